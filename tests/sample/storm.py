"""Handlers of the storm: each notes which job and which claim of it starts and ends."""

from __future__ import annotations

import asyncio
import time

from django.db import connection

from django_jobqueue import Context, PerKey, Rate, Retry, job
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


@job(name="tests.storm.plain", takes_context=True, on_complete=follow)
def plain(context: Context, journal: str, seconds: float) -> None:
    """Take some time in a thread."""
    _work(context, journal, seconds)


@job(name="tests.storm.waiting", takes_context=True)
async def waiting(context: Context, journal: str, seconds: float) -> None:
    """Take some time in the event loop."""
    note(journal, "start", context.id, context.fence)
    await asyncio.sleep(seconds)
    note(journal, "end", context.id, context.fence)


@job(name="tests.storm.retried", takes_context=True, max_attempts=3)
def retried(context: Context, journal: str, seconds: float) -> None:
    """Succeed at the last attempt."""
    _work(context, journal, seconds)
    if context.attempt < 3:
        raise Retry("not yet", after=0.2)


@job(
    name="tests.storm.failing", takes_context=True, max_attempts=2, backoff="immediate"
)
def failing(context: Context, journal: str, seconds: float) -> None:
    """Fail each time."""
    _work(context, journal, seconds)
    raise ValueError("no")


@job(name="tests.storm.atomic", takes_context=True, atomic=True)
def atomic(context: Context, journal: str, seconds: float) -> None:
    """Write a row in the transaction that ends the job."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO storm_effect (job) VALUES (%s)", [context.id])
    _work(context, journal, seconds)


@job(name="tests.storm.once", takes_context=True, delivery="at_most_once")
def once(context: Context, journal: str, seconds: float) -> None:
    """Start at most once."""
    _work(context, journal, seconds)


@job(name="tests.storm.limited", takes_context=True, concurrency=CONCURRENCY)
def limited(context: Context, journal: str, seconds: float) -> None:
    """A few at a time."""
    _work(context, journal, seconds)


@job(
    name="tests.storm.keyed",
    takes_context=True,
    per_key=PerKey("key", concurrency=OF_KEY),
)
def keyed(context: Context, journal: str, seconds: float, key: int) -> None:
    """A few of each key at a time."""
    _work(context, journal, seconds)


@job(name="tests.storm.rated", takes_context=True, rate=RATE)
def rated(context: Context, journal: str, seconds: float) -> None:
    """So many a second."""
    _work(context, journal, seconds)


@job(
    name="tests.storm.keyed_rated",
    takes_context=True,
    per_key=PerKey("key", concurrency=1, rate=RATE_OF_KEY),
)
def keyed_rated(context: Context, journal: str, seconds: float, key: int) -> None:
    """So many of each key a second, one at a time."""
    _work(context, journal, seconds)


@job(
    name="tests.storm.ordered",
    takes_context=True,
    max_attempts=3,
    per_key=PerKey("key", concurrency=1, strict=True),
)
def ordered(context: Context, journal: str, seconds: float, key: int) -> None:
    """One after the other of each key, which waits for retries."""
    _work(context, journal, seconds)
    if context.attempt < 2:
        raise Retry("not yet", after=0.2)
