"""Values of metrics, as whoever counts hands them to the exposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django_jobqueue.domain import histogram


class Distribution(NamedTuple):
    """The value of a histogram: how many were in each bucket, and the sum of all.

    ``counts`` has one number for each of the metric's ``bounds``, and one for what is
    above the last, none added up. Those of durations are the histograms of
    ``domain.histogram`` as they are, and ``total`` is in seconds.
    """

    counts: Sequence[int]
    total: float


Value = float | Distribution


class Sample(NamedTuple):
    """The value of one label set of a metric of the catalogue."""

    metric: str  # its name in the catalogue
    value: Value
    labels: tuple[str, ...] = ()  # in the order of the metric's labels


def added(first: Value, second: Value) -> Value:
    """Two values of the same metric, added up."""
    if isinstance(first, Distribution) and isinstance(second, Distribution):
        counts = histogram.added((first.counts, second.counts))
        return Distribution(counts, first.total + second.total)
    assert not isinstance(first, Distribution)
    assert not isinstance(second, Distribution)
    return first + second


def size_of(value: Value) -> float:
    """How much a value counts when the largest are chosen."""
    return sum(value.counts) if isinstance(value, Distribution) else value
