"""Histograms: five buckets for each power of ten, from 1 ms to a day."""

from __future__ import annotations

import math

from django_jobqueue.domain.histogram import BOUNDS, BUCKETS, bucket_of, percentile
from tests.support.tables import differing


def counted(*durations: float) -> list[int]:
    histogram = [0] * BUCKETS
    for seconds in durations:
        histogram[bucket_of(seconds)] += 1
    return histogram


def test_the_bounds_ascend_from_a_millisecond_to_more_than_a_day() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    assert BOUNDS[0] == 0.001
    assert BOUNDS[-1] > 86_400
    assert len(BOUNDS) + 1 == BUCKETS
    for lower, upper in zip(BOUNDS, BOUNDS[5:], strict=False):
        assert math.isclose(upper / lower, 10)


def test_a_duration_has_one_bucket() -> None:
    buckets: list[tuple[float, int]] = [
        *((0.0, 0), (-1.0, 0), (0.001, 0), (0.0011, 1), (0.0015, 1), (0.01, 5)),
        *((1.0, 15), (1.01, 16), (86_400, 40), (1e9, 41), (math.inf, 41)),
        *((bound, index) for index, bound in enumerate(BOUNDS)),
        *((bound * 1.0001, index + 1) for index, bound in enumerate(BOUNDS)),
    ]
    assert differing(buckets, bucket_of) == []


def test_a_percentile_is_the_upper_bound_of_its_bucket() -> None:
    histogram = counted(*[0.002] * 90, *[0.5] * 9, 3.0)
    shares = [(0.5, 0.002), (0.9, 0.002), (0.91, 0.5), (0.99, 0.5), (1.0, 3.0)]
    rows = [(share, BOUNDS[bucket_of(seconds)]) for share, seconds in shares]
    assert differing(rows, lambda share: percentile(histogram, share)) == []
    assert percentile(counted(1e9), 0.5) == BOUNDS[-1]
    assert percentile(counted(0.5, 3.0), 0.0) == BOUNDS[bucket_of(0.5)]
    assert percentile([], 0.5) is percentile([0] * BUCKETS, 0.5) is None
    seconds = 0.0011
    while seconds < BOUNDS[-1]:
        found = percentile(counted(seconds), 0.5)
        assert found is not None
        assert seconds <= found <= seconds * 1.59
        seconds *= 1.07
