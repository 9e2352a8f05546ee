"""Calls of handlers, as an editor sees them. Nothing of this is ever run.

A checker must find an error in each line that ends with ``wrong``, and in no other.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import assert_type

from django_jobqueue import (
    Context,
    Handler,
    Job,
    RetryRule,
    aenqueue,
    aenqueue_many,
    enqueue,
    enqueue_many,
    get_job,
    job,
)
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.retries import exponential, fixed, respect_retry_after


@job
def send(order_id: int, language: str = "en") -> str:
    return language


def by_error(attempt: int, exception: OSError, job: Context) -> float | None:
    return exception.errno


@job
def report(job: str, status: str) -> None: ...


@job(
    queue="mail",
    unique=("order_id",),
    unique_until="started",
    on_duplicate="return",
    on_success=[report, "shop.publish"],
    on_failure=("shop.alarm",),
    on_complete=report,
    capture=("language",),
    middleware=("shop.middleware.timed",),
    timeout=timedelta(minutes=1),
    backoff=partial(exponential, base=1),
    retry={
        ConnectionError: RetryRule(max_attempts=3, backoff=by_error),
        (KeyError, ValueError): False,
        OSError: respect_retry_after,
        Exception: "quartic",
    },
)
def charge(order_id: int, *, amount: float = 1.0) -> None: ...


@job(unique=True, debounce=30, debounce_max=timedelta(minutes=5))
def refresh(cart_id: int) -> None: ...


@job(unique=True, unique_until=timedelta(days=1), on_duplicate="return")
def remind(user_id: int) -> None: ...


@job(takes_context=True)
def count(context: Context, rows: list[int]) -> int:
    return len(rows)


@job(takes_context=True, priority=3)
async def count_later(context: Context, rows: list[int]) -> int:
    return len(rows)


@job(takes_context=False)
async def load(url: str) -> bytes:
    return url.encode()


def right(when: datetime) -> None:
    assert_type(send(7), str)
    assert_type(send.enqueue(7), Job)
    assert_type(send.enqueue(order_id=7, language="de"), Job)
    assert_type(send.enqueue_many([{"order_id": 7}]), EnqueuedIds)
    assert_type(send.using(priority=3, tags=["a"]).enqueue(7, "de"), Job)
    assert_type(send.using(run_after=when).using(unique_key="x").enqueue(7), Job)
    assert_type(send.using(backoff="fixed", timeout=5).enqueue(7), Job)
    assert_type(send.using(backoff=partial(fixed, wait=5)).enqueue(7), Job)
    assert_type(send.using(on_complete=report, metadata={"a": 1}).enqueue(7), Job)
    later = report.using(run_after=timedelta(minutes=1))
    assert_type(send.using(on_success=later, on_failure=[report]).enqueue(7), Job)
    assert_type(charge.enqueue(7, amount=2), Job)
    assert_type(count.enqueue([1, 2]), Job)
    assert_type(count_later.using(expires_in=5).enqueue(rows=[1]), Job)
    assert_type(load.enqueue("https://example.com"), Job)
    assert_type(enqueue("shop.send", {"a": 1}, queue="q", using="other"), Job)
    assert_type(enqueue_many("shop.send", [{"a": 1}], max_attempts=3), EnqueuedIds)
    assert_type(get_job("7", using="other"), Job)
    takes_a_handler(send)
    takes_a_handler(send.using(priority=3))


async def right_later() -> None:
    assert_type(await send.aenqueue(7, language="de"), Job)
    assert_type(await count.aenqueue([1]), Job)
    assert_type(await load("https://example.com"), bytes)
    assert_type(await aenqueue("shop.send", priority=3), Job)
    assert_type(await aenqueue_many("shop.send", []), EnqueuedIds)


def takes_a_handler(handler: Handler[[int, str], str]) -> None:
    handler.enqueue(7, "de")
    handler.enqueue("7", "de")  # wrong


def wrong() -> None:
    send.enqueue()  # wrong
    send.enqueue("7")  # wrong
    send.enqueue(7, "de", 3)  # wrong
    send.enqueue(order=7)  # wrong
    send.enqueue(7, language=None)  # wrong
    send.using(priority=3).enqueue("7")  # wrong
    send("7")  # wrong
    charge.enqueue(7, 2.0)  # wrong
    count.enqueue(Context, [1])  # wrong
    count.enqueue(["1"])  # wrong
    count_later.enqueue("1")  # wrong
    load.enqueue(7)  # wrong
    send.using(prioriti=3)  # wrong
    send.using(priority="high")  # wrong
    send.using(on_duplicate="skip")  # wrong
    send.using(on_complete=7)  # wrong
    send.using(on_success=[7])  # wrong
    send.using(timeout="1h")  # wrong
    send.using(backoff=[1])  # wrong
    enqueue("shop.send", {"a": 1}, quue="q")  # wrong
    enqueue("shop.send", [1])  # wrong
    enqueue_many("shop.send", {"a": 1})  # wrong
    takes_a_handler(charge)  # wrong


async def wrong_later() -> None:
    await send.aenqueue("7")  # wrong
    await aenqueue("shop.send", priority="high")  # wrong


job(que="mail")  # wrong
job(unique_until="start")  # wrong
job(capture=("timezone",))  # wrong
job(retry={"OSError": False})  # wrong
job(retry={OSError: 5})  # wrong
job(retry=(OSError,))  # wrong
job(backoff=lambda: 5)  # wrong
RetryRule(max_attempts="3")  # wrong
