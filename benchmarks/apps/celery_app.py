"""Celery with Redis and without a result backend, which is its default."""

from __future__ import annotations

import os
from collections.abc import Sequence

from celery import Celery

from benchmarks import journal

app = Celery("benchmarks", broker=f"redis+socket://{os.environ['BENCH_REDIS']}")
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=int(os.environ.get("BENCH_PREFETCH", "4")),
    worker_redirect_stdouts=False,
)


@app.task(name="work")
def work(number: int, ms: int) -> None:
    """The handler."""
    journal.work(number, ms)


def connect() -> None:
    """Connect to Redis, and keep the connection."""
    app.producer_pool.acquire(block=True).release()


def enqueue(number: int, ms: int) -> None:
    """One message."""
    work.delay(number, ms)


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """It has no bulk call; what can be saved is to look a producer up."""
    with app.producer_pool.acquire(block=True) as producer:
        for number in numbers:
            work.apply_async((number, ms), producer=producer)
