"""Histograms of durations: five buckets for each power of ten, from 1 ms to a day.

The bounds are 10^(i/5) ms, so a percentile read from a histogram is at most 58 % above
the true one. Histograms add up, which percentiles do not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

BOUNDS: Final = tuple(10 ** (step / 5) / 1_000 for step in range(41))  # seconds
BUCKETS: Final = len(BOUNDS) + 1  # the last one: longer than a day


# The index of the bucket that counts a duration in seconds; each attempt needs two.
bucket_of: Final[Callable[[float], int]] = partial(bisect_left, BOUNDS)


def added(histograms: Iterable[Sequence[int]]) -> list[int]:
    """Histograms added up, bucket by bucket."""
    return [sum(counts) for counts in zip(*histograms, strict=True)]


def percentile(histogram: Sequence[int], share: float) -> float | None:
    """The upper bound, in seconds, of the bucket with this share (0…1) of the counts.

    None if nothing was counted. For the last bucket, the greatest bound.
    """
    total = sum(histogram)
    if not total:
        return None
    wanted = max(1, share * total)
    seen = 0
    for index, count in enumerate(histogram):
        seen += count
        if seen >= wanted:
            return BOUNDS[min(index, len(BOUNDS) - 1)]
    return BOUNDS[-1]


class Times:
    """A row with histograms of run times and of waits."""

    __slots__ = ()

    run: list[int]
    wait: list[int]

    def run_time(self, share: float) -> float | None:
        """A percentile of the run times, in seconds."""
        return percentile(self.run, share)

    def wait_time(self, share: float) -> float | None:
        """A percentile of the waits, in seconds."""
        return percentile(self.wait, share)
