"""The handlers of the soak. ``at`` is when the job was due, in ns of the monotonic
clock."""

from __future__ import annotations

import asyncio
import time

from django.db import connection

from benchmarks.journal import mark
from benchmarks.soak.kinds import ATTEMPTS, RATE, Mix
from django_jobqueue import Context, PerKey, Rate, Retry, job


@job
def short(at: int) -> None:
    """Do nothing."""
    mark(at, Mix.SHORT)


@job
def bulk(at: int) -> None:
    """Do nothing, as one of many."""
    mark(at, Mix.BULK)


@job
async def waiting(at: int) -> None:
    """Wait for something else."""
    mark(at, Mix.WAITING)
    await asyncio.sleep(0.1)


@job
def long(at: int) -> None:
    """Take ten seconds."""
    mark(at, Mix.LONG)
    time.sleep(10)


@job(max_attempts=1)
def failing(at: int) -> None:
    """Fail."""
    mark(at, Mix.FAILING)
    raise ValueError("This job always fails.")


@job(takes_context=True)
def retrying(context: Context, at: int) -> None:
    """Succeed at the last attempt."""
    mark(at, Mix.RETRYING)
    if context.attempt < ATTEMPTS:
        raise Retry("not yet", after=1)


@job
def scheduled(at: int) -> None:
    """Do nothing, later."""
    mark(at, Mix.SCHEDULED)


@job(atomic=True)
def atomic(at: int) -> None:
    """Write a row in the transaction that ends the job."""
    mark(at, Mix.ATOMIC)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO soak_write (due) VALUES (%s)", [at])


@job(concurrency=3)
def limited(at: int) -> None:
    """Use something that only three may use at once."""
    mark(at, Mix.LIMITED)
    time.sleep(0.05)


@job(per_key=PerKey("key", concurrency=1))
def keyed(at: int, key: int) -> None:
    """Use something that each key has one of."""
    mark(at, Mix.KEYED)
    time.sleep(0.02)
    mark(at, Mix.KEYED_END)


@job(rate=Rate(RATE, per=1))
def rated(at: int) -> None:
    """Use something that may be used so often."""
    mark(at, Mix.RATED)
