"""Handlers of these tests."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_jobqueue import Cancel, Context, Fail, Retry, Snooze, current_job, job
from django_jobqueue.testing import crash, drain, lose_lease

heard: list[Any] = []  # what callbacks and handlers noted, in order


@job
def greet(name: str) -> str:
    """Write a row."""
    Group.objects.create(name=name)
    return f"Hello, {name}!"


@job
async def agreet(name: str) -> str:
    """Write a row from async code."""
    await Group.objects.acreate(name=name)
    return f"Hello, {name}!"


@job(atomic=True)
def greet_or_not(name: str, fails: bool = False) -> str:
    """Write a row, or fail and leave none."""
    Group.objects.create(name=name)
    if fails:
        raise ValueError(name)
    return name


@job(max_attempts=3, backoff=60)
def fail(message: str = "no") -> None:
    """Fail each time, a minute apart."""
    raise ValueError(message)


@job(max_attempts=3, backoff="immediate")
def fail_fast() -> None:
    """Fail three times at once."""
    raise ValueError("no")


@job(max_attempts=2)
def say(word: str) -> None:
    """Say one of the four words."""
    raise {
        "retry": Retry("again", after=60),
        "snooze": Snooze(60, "later"),
        "fail": Fail("hopeless"),
        "cancel": Cancel("not wanted"),
    }[word]


@job
def hear(word: str) -> None:
    """Note a word, now and on commit."""
    heard.append(word)
    transaction.on_commit(partial(heard.append, f"{word} committed"))


@job
def hear_anything(word: Any) -> None:
    """Note anything."""
    heard.append(word)


@job(on_complete="tests.testing.after")
def before() -> None:
    """Something follows on this."""


@job
def after(job: str, status: str) -> None:
    """Follow."""
    heard.append(status)


@job
def again() -> None:
    """Enqueue itself, without end."""
    again.enqueue()


@job
def spread(words: list[str]) -> None:
    """Enqueue a job for each word."""
    hear.enqueue_many({"word": word} for word in words)


@job
def break_transaction() -> None:
    """Leave an error of the database behind."""
    Group.objects.create(name="lost")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


@job(takes_context=True)
def look(context: Context, key: str = "") -> list[Any]:
    """What the context says."""
    return [context.attempt, context.max_attempts, context.metadata.get(key)]


@job(takes_context=True)
def crash_once(context: Context) -> int:
    """Take the worker along, the first time."""
    Group.objects.create(name=f"run {context.crashes}")
    if context.crashes == 0:
        crash()
    return context.crashes


@job(max_crashes=2)
def crash_always() -> None:
    """Take every worker along."""
    crash()


@job(takes_context=True)
def lose_once(context: Context) -> int:
    """Be taken for dead, the first time."""
    if context.crashes == 0:
        lose_lease()
    Group.objects.create(name=f"run {context.crashes}")
    return context.crashes


@job(atomic=True, takes_context=True)
def lose_once_atomically(context: Context) -> int:
    """The same; what it wrote then is undone."""
    Group.objects.create(name=f"run {context.crashes}")
    if context.crashes == 0:
        lose_lease()
    return context.crashes


@job(expires_in=3600)
def urgent() -> None:
    """Useless after an hour."""


@job(concurrency=1)
def one_at_a_time(word: str) -> None:
    """Limited."""
    heard.append(word)


@job
def drain_inside() -> None:
    """Do what no handler may."""
    drain()


@job
def interrupt() -> None:
    """Be interrupted from the keyboard."""
    raise KeyboardInterrupt


@job(takes_context=True)
async def afault(context: Context, what: str) -> None:
    """Crash, or lose the lease, the first time."""
    if context.crashes == 0:
        {"crash": crash, "lose": lose_lease}[what]()


@job
def add(a: int, b: int) -> int:
    """Return a sum."""
    return a + b


@job
async def aadd(a: int, b: int) -> int:
    """Return a sum."""
    return a + b


@job
def odd() -> object:
    """Return what JSON does not have."""
    return object()


@job
def tell() -> list[Any]:
    """What the attempt knows of itself, and keeps."""
    here = current_job()
    here.metadata["more"] = 1
    here.save_metadata()
    return [here.attempt, here.max_attempts, here.crashes, here.metadata["key"]]


@job(max_attempts=2, backoff="immediate")
def report() -> None:
    """Tell how far it is, keep something, and fail the first time."""
    here = current_job()
    here.progress(3, 10, "resizing")
    here.log(f"attempt {here.attempt}")
    here.metadata["seen"] = here.attempt
    here.save_metadata()
    if here.attempt == 1:
        raise ValueError("not yet")
