"""The counters of all processes of a host."""

from __future__ import annotations

import os
import signal
from itertools import pairwise

import pytest

from django_jobqueue.domain.series import Series, summed
from django_jobqueue.processes import host_counters
from django_jobqueue.processes.host_counters import HostCounters
from tests.support.waiting import eventually

JOBS = "jobs"


def total(counters: HostCounters) -> Series:
    return summed(published.counters for published in counters.read())


def test_counters_of_a_process_that_ends_are_kept_and_its_gauges_are_not() -> None:
    counters = HostCounters(2)
    counters.process_ended(counters.workers[0])  # that has published nothing
    assert counters.read() == []
    for pid, value in enumerate((*counters.workers, counters.maintenance)):
        value.write((pid, {JOBS: {(): 2}}, {"busy": {(): 1}}))
    counters.count_death("killed")
    counters.count_death("killed")
    counters.process_ended(counters.workers[1])
    counters.process_ended(counters.maintenance)
    assert total(counters) == {
        JOBS: {(): 6},
        "jobqueue_worker_deaths_total": {("killed",): 2},
    }
    gauges = summed(published.gauges for published in counters.read())
    assert gauges == {"busy": {(): 1}}


def test_no_counter_falls_for_a_reader_while_processes_end() -> None:
    """The writer is the supervisor here, and plays the workers, too."""
    counters = HostCounters(3)
    if (pid := os.fork()) == 0:
        number = 0
        while True:
            value = counters.workers[number % 3]
            for count in range(1, 5):
                value.write((1, {JOBS: {(): count}}, {}))
            counters.process_ended(value)
            number += 1
    seen: list[float] = []

    def has_seen_enough() -> bool:
        seen.extend(total(counters).get(JOBS, {}).get((), 0) for _ in range(100))
        return len(set(seen)) > 5

    try:
        eventually(has_seen_enough)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert all(before <= after for before, after in pairwise(seen))


def test_a_reader_waits_for_nobody_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_counters, "READS", 3)
    counters = HostCounters(1)
    counters.workers[0].write((1, {JOBS: {(): 1}}, {}))
    counters._moves[0] = 1  # private: it died in the middle
    assert total(counters) == {JOBS: {(): 1}}
