"""The life of a worker process: when it is to be replaced, and its end when a step of
it fails."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers import process_limits
from django_jobqueue.workers.process_limits import ProcessLimits
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker_main import (
    GARBAGE,
    RELEASED,
    WorkerMain,
    collect_seldom,
)

MB = 1 << 20


class Process:
    def __init__(self) -> None:
        self.age = 0.0
        self.memory = 80 * MB


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    made = Process()
    monkeypatch.setattr(process_limits.time, "monotonic", lambda: 1_000 + made.age)
    monkeypatch.setattr(process_limits.identity, "rss", lambda pid: made.memory)
    return made


def limits(**settings: float) -> ProcessLimits:
    with conf.override(settings):
        return ProcessLimits.of_settings()


def test_limits_are_reached_within_a_tenth(process: Process) -> None:
    assert ProcessLimits.of_settings() is None  # nothing is set
    for _ in range(20):
        jobs, age = limits(MAX_JOBS=100), limits(MAX_AGE=100.0)
        assert jobs.exceeded(finished=89) == ""
        assert jobs.exceeded(finished=110) == "MAX_JOBS"
        process.age = 89
        assert age.exceeded(finished=10**9) == ""
        process.age = 111
        assert age.exceeded(finished=0) == "MAX_AGE"
        process.age = 0
    # Siblings do not reach a limit together.
    assert len({limits(MAX_JOBS=10_000).jobs for _ in range(10)}) > 1


def test_memory_is_looked_at_once_a_second(process: Process) -> None:
    memory = limits(MAX_MEMORY=500 * MB)
    assert memory.exceeded(finished=0) == ""
    process.memory = 600 * MB
    assert memory.exceeded(finished=0) == ""
    process.age = 1.5
    assert memory.exceeded(finished=0) == "MAX_MEMORY"


def test_a_process_that_begins_above_the_limit_may_grow_and_says_so(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    memory = limits(MAX_MEMORY=50 * MB)
    assert "begins with 80 MB; it is replaced when it has 100 MB" in caplog.text
    assert memory.exceeded(finished=0) == ""
    process.age, process.memory = 2, 101 * MB
    assert memory.exceeded(finished=0) == "MAX_MEMORY"


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    """This process's own are back afterwards."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_worker_looks_seldom_and_no_oftener_than_the_project_wants() -> None:
    for own, wanted in ((700, GARBAGE), (GARBAGE, GARBAGE), (2 * GARBAGE,) * 2, (0, 0)):
        gc.set_threshold(own, 7, 8)
        collect_seldom()
        assert gc.get_threshold() == (wanted, 7, 8)


class Failing:
    """A worker that cannot be stopped in order."""

    name = "web-3:7"
    held: set[Any] = set()

    def __init__(self, process_table: ProcessTable) -> None:
        self._process_table = process_table
        self.was_orderly: list[int] = []

    def record_ends(self, within: float, *, unresponsive: bool) -> None:
        """It has none."""

    def stop(self, timeout: float) -> None:
        self.was_orderly.append(self._process_table.entry(0).orderly)
        raise OSError("no space left on device")


def test_an_end_is_orderly_whatever_fails_in_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else it would count as a crash of the jobs that it leaves."""
    wakeups = WakeupPipes()
    process_table = ProcessTable(1, wakeups)
    dump = UnfinishedJobsDump(str(tmp_path), "web-3:6")
    lifecycle = WorkerMain(
        WorkerConfig(),
        process_table=process_table,
        entry_number=0,
        order_pipe=-1,
        dump=dump,
    )
    worker = Failing(process_table)
    # private: the end of run(), of which the process would exit
    lifecycle._stop(worker, RELEASED)
    assert worker.was_orderly == [1]
    assert "The end of worker web-3:7 failed" in caplog.text
    lifecycle._wakeup.close()  # private: what run() closes
    wakeups.close()
