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
    Group.objects.create(name=name)
    return f"Hello, {name}!"


@job
async def agreet(name: str) -> str:
    await Group.objects.acreate(name=name)
    return f"Hello, {name}!"


@job(atomic=True)
def greet_or_not(name: str, fails: bool = False) -> str:
    Group.objects.create(name=name)
    if fails:
        raise ValueError(name)
    return name


@job(max_attempts=3, backoff=60)
def fail(message: str = "no") -> None:
    raise ValueError(message)


@job(max_attempts=3, backoff="immediate")
def fail_fast() -> None:
    raise ValueError("no")


@job(max_attempts=2)
def say(word: str) -> None:
    raise {
        "retry": Retry("again", after=60),
        "snooze": Snooze(60, "later"),
        "fail": Fail("hopeless"),
        "cancel": Cancel("not wanted"),
    }[word]


@job
def hear(word: str) -> None:
    heard.append(word)
    transaction.on_commit(partial(heard.append, f"{word} committed"))


@job
def hear_anything(word: Any) -> None:
    heard.append(word)


@job(on_complete="tests.testing.after")
def before() -> None:
    """Something follows on this."""


@job
def after(job: str, status: str) -> None:
    heard.append(status)


@job
def again() -> None:
    again.enqueue()


@job
def spread(words: list[str]) -> None:
    hear.enqueue_many({"word": word} for word in words)


@job
def break_transaction() -> None:
    Group.objects.create(name="lost")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")


@job(takes_context=True)
def look(context: Context, key: str = "") -> list[Any]:
    return [context.attempt, context.max_attempts, context.metadata.get(key)]


@job(takes_context=True)
def crash_once(context: Context) -> int:
    Group.objects.create(name=f"run {context.crashes}")
    if context.crashes == 0:
        crash()
    return context.crashes


@job(max_crashes=2)
def crash_always() -> None:
    crash()


@job(takes_context=True)
def lose_once(context: Context) -> int:
    if context.crashes == 0:
        lose_lease()
    Group.objects.create(name=f"run {context.crashes}")
    return context.crashes


@job(atomic=True, takes_context=True)
def lose_once_atomically(context: Context) -> int:
    Group.objects.create(name=f"run {context.crashes}")
    if context.crashes == 0:
        lose_lease()
    return context.crashes


@job(expires_in=3600)
def urgent() -> None:
    """Useless after an hour."""


@job(concurrency=1)
def one_at_a_time(word: str) -> None:
    heard.append(word)


@job
def drain_inside() -> None:
    drain()


@job
def interrupt() -> None:
    raise KeyboardInterrupt


@job(takes_context=True)
async def afault(context: Context, what: str) -> None:
    if context.crashes == 0:
        {"crash": crash, "lose": lose_lease}[what]()


@job
def add(a: int, b: int) -> int:
    return a + b


@job
async def aadd(a: int, b: int) -> int:
    return a + b


@job
def odd() -> object:
    return object()


@job
def tell() -> list[Any]:
    here = current_job()
    here.metadata["more"] = 1
    here.save_metadata()
    return [here.attempt, here.max_attempts, here.crashes, here.metadata["key"]]


@job(max_attempts=2, backoff="immediate")
def report() -> None:
    here = current_job()
    here.progress(3, 10, "resizing")
    here.log(f"attempt {here.attempt}")
    here.metadata["seen"] = here.attempt
    here.save_metadata()
    if here.attempt == 1:
        raise ValueError("not yet")
