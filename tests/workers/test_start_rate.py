"""How many jobs a process takes ahead that shares the CPU with others."""

from __future__ import annotations

import pytest

from django_jobqueue.workers.executors import start_rate
from django_jobqueue.workers.executors.base import STALE
from django_jobqueue.workers.executors.start_rate import (
    FIRST,
    LONGEST_WAIT,
    SAMPLES,
    StartRate,
)
from tests.workers.stopped_clock import StoppedClock


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    """The clock of start rates."""
    clock = StoppedClock()
    monkeypatch.setattr(start_rate, "time", clock)
    return clock


def drain(
    time: StoppedClock, started: StartRate, jobs_per_second: float, claims: int
) -> float:
    """Claim so many times, when half is left; the longest wait of a job, in seconds."""
    waiting, longest = 0, 0.0
    for _ in range(claims):
        jobs = max(0, started.most_prefetched - waiting)
        started.claimed(jobs, waiting=waiting)
        waiting += jobs
        longest = waiting / jobs_per_second
        time.now += waiting / 2 / jobs_per_second
        waiting -= waiting // 2
    return longest


def test_no_job_waits_longer_than_is_meant(time: StoppedClock) -> None:
    for jobs_per_second in (1_000, 3_000, 40_000):
        longest = drain(time, StartRate(), jobs_per_second, claims=50)
        assert longest == pytest.approx(LONGEST_WAIT, rel=0.05)
        assert longest < STALE


def test_a_rate_that_falls_is_known_when_half_of_a_claim_is_done(
    time: StoppedClock,
) -> None:
    started = StartRate()
    drain(time, started, 8_000, claims=50)
    assert started.most_prefetched > 1_900
    drain(time, started, 1_500, claims=2)
    assert started.most_prefetched == 1_500 * LONGEST_WAIT


def test_neither_a_short_burst_nor_what_was_given_back_changes_it_much(
    time: StoppedClock,
) -> None:
    started = StartRate()
    drain(time, started, 2_000, claims=50)
    before = started.most_prefetched
    started.gave_back()  # those have not started
    started.claimed(100, waiting=0)
    assert started.most_prefetched == before

    started = StartRate()
    drain(time, started, 2_000, claims=50)
    time.now -= 0.12
    started.claimed(0, waiting=0)
    assert before < started.most_prefetched <= 1.51 * before


def test_lone_jobs_say_nothing_of_it(time: StoppedClock) -> None:
    started = StartRate()
    drain(time, started, 40_000, claims=50)
    started.claimed(1, waiting=0)
    before = started.most_prefetched
    assert before > FIRST * LONGEST_WAIT
    for _ in range(100):
        time.now += 1.0
        started.claimed(SAMPLES - 1, waiting=0)
    assert started.most_prefetched == before
