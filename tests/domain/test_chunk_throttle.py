"""The throttle: chunks of about a fifth of a second, and a rate that is kept."""

from __future__ import annotations

import pytest

from django_jobqueue.domain.chunk_throttle import (
    FIRST,
    LARGEST,
    SMALLEST,
    ChunkThrottle,
)


def test_chunks_grow_while_they_are_quick_and_shrink_when_they_are_slow() -> None:
    throttle = ChunkThrottle(None, now=0.0)
    # Without a rate there is no limit but a little rest, and a chunk that takes as long
    # as it should stays as it is.
    assert throttle.most is None
    assert throttle.did(changed=500, seconds=0.2, now=0.2) == pytest.approx(0.02)
    assert throttle.most is None
    assert throttle.size == FIRST
    for _ in range(10):
        throttle.did(changed=1, seconds=0.0, now=0.0)
    assert throttle.size == LARGEST
    throttle.did(changed=1, seconds=0.4, now=0.0)
    assert throttle.size == LARGEST // 2
    for _ in range(20):
        throttle.did(changed=1, seconds=9.0, now=0.0)
    assert throttle.size == SMALLEST


RATES = (1, 7, 20, 59, 60, 61, 90, 119, 120, 999, 3_000, 100_000)


def changes(
    throttle: ChunkThrottle, seconds: float, lag: float = 0.01
) -> list[tuple[float, int]]:
    """When how many jobs are changed, by a work of which there is always more; each
    chunk takes ``lag``."""
    now, found = 0.0, []
    while now < seconds:
        assert throttle.most is not None
        most = min(throttle.most, throttle.size)
        found.append((now, most))
        now += lag
        now += throttle.did(changed=most, seconds=lag, now=now)
    return found


def greatest(found: list[tuple[float, int]], span: float) -> int:
    """The most that was changed in any such span of time."""
    most = within = end = 0
    for start, number in found:
        while end < len(found) and found[end][0] < start + span:
            within += found[end][1]
            end += 1
        most = max(most, within)
        within -= number
    return most


@pytest.mark.dear
def test_a_rate_is_spread_evenly_and_never_exceeded() -> None:
    """In no second is there more than a second's share, and a job or two; in no minute
    more than the rate and a portion."""
    for per_minute in RATES:
        found = changes(ChunkThrottle(per_minute, now=0.0), 150)
        share = max(1, per_minute / 60)
        assert max(number for _, number in found) <= share + 1
        assert greatest(found, 0.99) <= 2 * share + 2
        assert greatest(found, 60) <= per_minute + share + 1
    for per_minute in RATES:
        minutes = 60 if per_minute < 10_000 else 5  # of many small chunks
        found = changes(ChunkThrottle(per_minute, now=0.0), minutes * 60)
        allowed = per_minute * minutes
        changed = sum(number for _, number in found)
        assert 0.95 * allowed <= changed <= allowed + per_minute / 60 + 2


def test_three_thousand_a_minute_are_fifty_a_second_and_two_are_far_apart() -> None:
    found = changes(ChunkThrottle(3_000, now=0.0), 10)
    assert {number for _, number in found} == {50}
    assert len(found) == 10
    throttle = ChunkThrottle(2, now=0.0)
    assert throttle.most == 1
    assert throttle.did(changed=1, seconds=0.1, now=0.1) == pytest.approx(29.9)
    assert throttle.most == 1
    throttle = ChunkThrottle(600, now=0.0)
    throttle.did(changed=0, seconds=0.1, now=0.1)
    assert throttle.most == 11
    throttle.did(changed=10, seconds=0.1, now=0.2)
    throttle.did(changed=0, seconds=0.1, now=3_600)
    assert throttle.most == 11
