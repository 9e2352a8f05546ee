"""How many jobs a process claims ahead of free slots."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_jobqueue.workers.executors import base
from django_jobqueue.workers.executors.base import (
    LARGEST_PREFETCHED,
    LEAST_RATE,
    LONGEST_WAIT,
    MOST_PREFETCHED,
    OVERHEAD,
    SAMPLES,
    STALE,
    RuntimeEstimate,
    StartRate,
)
from tests.workers.stopped_clock import StoppedClock


def pace_of(seconds: float, runs: int = SAMPLES) -> RuntimeEstimate:
    runtimes = RuntimeEstimate()
    for _ in range(runs):
        runtimes.ran("mail", seconds)
    return runtimes


def test_neither_what_is_not_known_nor_what_is_long_is_claimed_ahead() -> None:
    assert pace_of(0.001, SAMPLES - 1).prefetch("mail", 4) == 0
    assert RuntimeEstimate().prefetch("mail", 4) == 0
    assert pace_of(0.5).prefetch("mail", 4) == 0
    runtimes = pace_of(0.001)
    runtimes.ran("mail", 5.0)  # it has become long
    assert not runtimes.is_short("mail")


def test_so_many_are_claimed_as_the_slots_do_in_the_time() -> None:
    with override_settings(JOBQUEUE={"PREFETCH": 0.05}):
        assert pace_of(0.002).prefetch("mail", 4) == 100
        assert pace_of(0.000001).prefetch("mail", 4) == 0.05 / OVERHEAD
    with override_settings(JOBQUEUE={"PREFETCH": 60}):
        assert pace_of(0.000001).prefetch("mail", 4) == MOST_PREFETCHED
    with override_settings(JOBQUEUE={"PREFETCH": 0}):  # it is switched off
        assert pace_of(0.001).prefetch("mail", 4) == 0


def test_the_larger_the_data_of_jobs_is_the_fewer_are_claimed_ahead() -> None:
    with override_settings(JOBQUEUE={"PREFETCH": 60}):
        runtimes = pace_of(0.000001)
        runtimes.took(9_000)
        assert runtimes.prefetch("mail", 4) == MOST_PREFETCHED
        runtimes.took(1_000_000)
        assert runtimes.prefetch("mail", 4) == LARGEST_PREFETCHED // 1_000_000 == 32
        for _ in range(50):
            runtimes.took(0)
        assert runtimes.prefetch("mail", 4) == MOST_PREFETCHED


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    monkeypatch.setattr(base, "time", clock)
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


def test_a_rate_that_falls_is_known_after_half_a_claim(time: StoppedClock) -> None:
    started = StartRate()
    drain(time, started, 8_000, claims=50)
    assert started.most_prefetched > 1_900
    drain(time, started, 1_500, claims=2)
    assert started.most_prefetched == 1_500 * LONGEST_WAIT


def test_a_burst_and_what_is_given_back_change_little(time: StoppedClock) -> None:
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
    assert before > LEAST_RATE * LONGEST_WAIT
    for _ in range(100):
        time.now += 1.0
        started.claimed(SAMPLES - 1, waiting=0)
    assert started.most_prefetched == before
