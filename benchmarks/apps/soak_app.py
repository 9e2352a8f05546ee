"""Enqueues the jobs of the soak."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

import django
from django.core.management import call_command
from django.db import connection

from benchmarks.soak import jobs
from benchmarks.soak.kinds import (
    BURST,
    BURST_EVERY,
    KEYS,
    PER_SECOND,
    RATED_BURST,
    RATED_EVERY,
    WAIT,
    Mix,
)
from django_jobqueue.enqueueing.handler import Handler

LATEST: Final = 1.0  # seconds


def install() -> None:
    """Migrate, and make the table of the atomic jobs."""
    django.setup()
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE soak_write (due bigint NOT NULL)")


def connect() -> None:
    """Set Django up; it connects when it has to."""
    django.setup()


def soak(seconds: float) -> dict[str, int]:
    """Enqueue jobs of all kinds, each at its rate; returns how many of each."""
    began = time.monotonic()
    done: Counter[str] = Counter()
    every = {mix: 1 / rate for mix, rate in PER_SECOND.items()}
    every |= {Mix.BULK: BURST_EVERY, Mix.RATED: RATED_EVERY}
    due = [(began + rest / 2, mix) for mix, rest in every.items()]
    heapq.heapify(due)
    while (now := time.monotonic()) < began + seconds:
        moment, mix = due[0]
        time.sleep(max(0.0, moment - now))
        # What a busy machine was too late for is left out, not made up for.
        heapq.heapreplace(due, (max(moment, now - LATEST) + every[mix], mix))
        done[mix.name] += ENQUEUE[mix]()
    return done


def _one(handler: Handler[..., None], wait: float = 0.0) -> int:
    at = time.monotonic_ns() + round(wait * 1e9)
    chosen = handler.using(run_after=timedelta(seconds=wait)) if wait else handler
    chosen.enqueue(at=at)
    return 1


def _keyed() -> int:
    at = time.monotonic_ns()
    jobs.keyed.enqueue(at=at, key=at % KEYS)
    return 1


def _burst(handler: Handler[..., None], count: int) -> int:
    at = time.monotonic_ns()
    handler.enqueue_many({"at": at} for _ in range(count))
    return count


ENQUEUE: dict[Mix, Callable[[], int]] = {
    Mix.SHORT: partial(_one, jobs.short),
    Mix.WAITING: partial(_one, jobs.waiting),
    Mix.LONG: partial(_one, jobs.long),
    Mix.FAILING: partial(_one, jobs.failing),
    Mix.RETRYING: partial(_one, jobs.retrying),
    Mix.SCHEDULED: partial(_one, jobs.scheduled, WAIT),
    Mix.ATOMIC: partial(_one, jobs.atomic),
    Mix.LIMITED: partial(_one, jobs.limited),
    Mix.BULK: partial(_burst, jobs.bulk, BURST),
    Mix.KEYED: _keyed,
    Mix.RATED: partial(_burst, jobs.rated, RATED_BURST),
}
