"""The end of a worker process, when a step of it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker_main import RELEASED, WorkerMain


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
    lifecycle._stop(worker, RELEASED)  # type: ignore[arg-type]
    assert worker.was_orderly == [1]
    assert "The end of worker web-3:7 failed" in caplog.text
    lifecycle._wakeup.close()  # private: what run() closes
    wakeups.close()
