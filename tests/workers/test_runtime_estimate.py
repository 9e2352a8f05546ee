"""What may be claimed ahead of free slots."""

from __future__ import annotations

from django.test import override_settings

from django_jobqueue.workers.executors.runtime_estimate import (
    LARGEST_PREFETCHED,
    MOST_PREFETCHED,
    OVERHEAD,
    SAMPLES,
    RuntimeEstimate,
)


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
