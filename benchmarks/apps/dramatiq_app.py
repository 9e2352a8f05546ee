"""Dramatiq with Redis and its default middleware."""

from __future__ import annotations

import os
from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks import journal

broker = RedisBroker(url=f"unix://{os.environ['BENCH_REDIS']}")
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="default")
def work(number: int, ms: int) -> None:
    """The handler."""
    journal.work(number, ms)


def connect() -> None:
    """Connect to Redis."""
    broker.client.ping()


def enqueue(number: int, ms: int) -> None:
    """One message."""
    work.send(number, ms)


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """It has no bulk call."""
    for number in numbers:
        work.send(number, ms)
