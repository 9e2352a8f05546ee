"""Handlers of the storm: each notes which job and which claim of it starts and ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from django.db import connection

from django_jobqueue import Context, PerKey, Rate, Retry, job
from django_jobqueue.enqueueing.handler import Handler
from tests.sample.jobs import note

CONCURRENCY = 3  # of ``limited``
OF_KEY = 2  # of each key of ``keyed``
RATE = Rate(40, per=1, burst=4)  # of ``rated``
RATE_OF_KEY = Rate(8, per=1, burst=2)  # of each key of ``keyed_rated``


def _work(context: Context, journal: str, seconds: float) -> None:
    note(journal, "start", context.id, context.fence)
    time.sleep(seconds)
    note(journal, "end", context.id, context.fence)


@job(name="tests.storm.follow")
def follow() -> None:
    """What follows each end of ``plain``."""


def _work_of_key(context: Context, journal: str, seconds: float, key: int) -> None:
    _work(context, journal, seconds)


async def _wait(context: Context, journal: str, seconds: float) -> None:
    note(journal, "start", context.id, context.fence)
    await asyncio.sleep(seconds)
    note(journal, "end", context.id, context.fence)


def _retry(context: Context, journal: str, seconds: float) -> None:
    """Succeed at the last attempt."""
    _work(context, journal, seconds)
    if context.attempt < 3:
        raise Retry("not yet", after=0.2)


def _fail(context: Context, journal: str, seconds: float) -> None:
    _work(context, journal, seconds)
    raise ValueError("no")


def _write(context: Context, journal: str, seconds: float) -> None:
    """In the transaction that ends the job."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO storm_effect (job) VALUES (%s)", [context.id])
    _work(context, journal, seconds)


def _retry_of_key(context: Context, journal: str, seconds: float, key: int) -> None:
    _work(context, journal, seconds)
    if context.attempt < 2:
        raise Retry("not yet", after=0.2)


def _job(name: str, handler: Callable[..., Any], **options: Any) -> Handler[..., Any]:
    made = job(name=f"tests.storm.{name}", takes_context=True, **options)(handler)
    return cast(Handler[..., Any], made)


plain = _job("plain", _work, on_complete=follow)
waiting = _job("waiting", _wait)
retried = _job("retried", _retry, max_attempts=3)
failing = _job("failing", _fail, max_attempts=2, backoff="immediate")
atomic = _job("atomic", _write, atomic=True)
once = _job("once", _work, delivery="at_most_once")
limited = _job("limited", _work, concurrency=CONCURRENCY)
keyed = _job("keyed", _work_of_key, per_key=PerKey("key", concurrency=OF_KEY))
rated = _job("rated", _work, rate=RATE)
keyed_rated = _job(
    "keyed_rated", _work_of_key, per_key=PerKey("key", concurrency=1, rate=RATE_OF_KEY)
)
ordered = _job(
    "ordered",
    _retry_of_key,
    max_attempts=3,
    per_key=PerKey("key", concurrency=1, strict=True),
)
