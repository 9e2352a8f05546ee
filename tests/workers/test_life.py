"""The end of a worker process, when a step of it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from django_jobqueue.processes.process_table import Roster
from django_jobqueue.processes.wakeup_pipe import Bells
from django_jobqueue.processes.worker_config import Plan
from django_jobqueue.workers.unfinished_jobs import Dump
from django_jobqueue.workers.worker_main import RELEASED, Life


class Failing:
    """A worker that cannot be stopped in order."""

    name = "web-3:7"
    held: set[Any] = set()

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self.was_orderly: list[int] = []

    def record_ends(self, within: float, *, hung: bool) -> None:
        """It has none."""

    def stop(self, timeout: float) -> None:
        self.was_orderly.append(self._roster.seat(0).orderly)
        raise OSError("no space left on device")


def test_an_end_is_orderly_whatever_fails_in_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else it would count as a crash of the jobs that it leaves."""
    bells = Bells()
    roster = Roster(1, bells)
    dump = Dump(str(tmp_path), "web-3:6")
    life = Life(Plan(), roster=roster, seat=0, control=-1, dump=dump)
    worker = Failing(roster)
    life._end(worker, RELEASED)  # type: ignore[arg-type]
    assert worker.was_orderly == [1]
    assert "The end of worker web-3:7 failed" in caplog.text
    life._bell.close()
    bells.close()
