"""Counts by metric and labels, in the plain form in which processes share them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from django_jobqueue.domain import histogram

Labels = tuple[str, ...]
Histogram = tuple[Sequence[int], float]  # how many in each bucket; the sum of all
Value = float | Histogram
Series = dict[str, dict[Labels, Value]]  # by metric


def added(first: Value, second: Value) -> Value:
    """Two values of one metric, added up."""
    if isinstance(first, tuple):
        (counts, total), (more, further) = first, cast("Histogram", second)
        return histogram.added((counts, more)), total + further
    return first + cast("float", second)


def summed(all_series: Iterable[Series]) -> Series:
    """All of them, added up."""
    total: Series = {}
    for series in all_series:
        for metric, values in series.items():
            held = total.setdefault(metric, {})
            for labels, value in values.items():
                before = held.get(labels)
                held[labels] = value if before is None else added(before, value)
    return total
