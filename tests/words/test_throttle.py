"""The throttle: chunks of about a fifth of a second, and a rate that is kept."""

from __future__ import annotations

import pytest

from django_jobqueue.throttle import FIRST, LARGEST, PERIOD, SMALLEST, Throttle


def test_without_a_rate_there_is_no_limit_but_a_little_rest() -> None:
    throttle = Throttle(None, now=0.0)
    assert throttle.most is None
    assert throttle.did(changed=500, seconds=0.2, now=0.2) == pytest.approx(0.02)
    assert throttle.most is None


def test_chunks_grow_while_they_are_quick_and_shrink_when_they_are_slow() -> None:
    throttle = Throttle(None, now=0.0)
    assert throttle.size == FIRST
    for _ in range(10):
        throttle.did(changed=1, seconds=0.0, now=0.0)
    assert throttle.size == LARGEST
    throttle.did(changed=1, seconds=0.4, now=0.0)
    assert throttle.size == LARGEST // 2
    for _ in range(20):
        throttle.did(changed=1, seconds=9.0, now=0.0)
    assert throttle.size == SMALLEST


def test_a_chunk_that_takes_as_long_as_it_should_stays_as_it_is() -> None:
    throttle = Throttle(None, now=0.0)
    throttle.did(changed=1, seconds=0.2, now=0.2)
    assert throttle.size == FIRST


def test_a_rate_is_kept_over_periods() -> None:
    throttle = Throttle(600, now=0.0)
    assert throttle.most == 100
    assert throttle.did(changed=60, seconds=0.1, now=0.1) < 1
    assert throttle.most == 40
    assert throttle.did(changed=40, seconds=0.1, now=0.5) == pytest.approx(PERIOD - 0.5)
    assert throttle.most == 100
    assert throttle.did(changed=100, seconds=0.1, now=PERIOD) == pytest.approx(PERIOD)


def test_what_was_left_out_costs_nothing_of_the_rate() -> None:
    throttle = Throttle(60, now=0.0)
    throttle.did(changed=0, seconds=0.1, now=1.0)
    assert throttle.most == 10


def test_a_rate_below_one_in_a_period_is_one_in_a_longer_period() -> None:
    throttle = Throttle(2, now=0.0)
    assert throttle.most == 1
    assert throttle.did(changed=1, seconds=0.1, now=0.1) == pytest.approx(29.9)


@pytest.mark.parametrize("per_minute", [1, 7, 59, 60, 61, 999, 100_000])
def test_an_hour_changes_no_more_than_its_rate_allows(per_minute: int) -> None:
    throttle, now, changed = Throttle(per_minute, now=0.0), 0.0, 0
    while now < 3_600:
        assert throttle.most is not None
        most = min(throttle.most, throttle.size)
        changed += most
        now += 0.01
        now += throttle.did(changed=most, seconds=0.01, now=now)
    assert (
        0.8 * per_minute * 60 <= changed + throttle.most <= 1.02 * per_minute * 60 + 2
    )
