"""What a rate lets through, for the tests."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django_jobqueue import Rate

MICROSECOND = timedelta(microseconds=1)


def gap(rate: Rate) -> timedelta:
    """The time after which one more may start, rounded up."""
    return -(-rate.window // (rate.limit - rate.size + 1) // MICROSECOND) * MICROSECOND


def most_in(rate: Rate, span: timedelta) -> float:
    """How much may start in so long a time."""
    return rate.size + (span + MICROSECOND) * (rate.limit - rate.size + 1) / rate.window


def heaviest_window(starts: Iterable[tuple[datetime, int]], window: timedelta) -> int:
    """The most weight that started in any window of this length."""
    log = sorted(starts)
    return max(
        sum(weight for other, weight in log if at <= other < at + window)
        for at, _ in log
    )
