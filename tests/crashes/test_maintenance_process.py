"""Maintenance processes that die at each step, and what becomes of the others."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import Failure, Worker
from tests.crashes.seen import (
    LEASE,
    all_archived,
    ends,
    is_gone,
    kill,
    maintenance_of,
    starts,
)
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]


class MaintenancePids:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "pids"
        self._file.touch()

    def fault(self, how: str, step: str, first: int, last: int) -> dict[str, str]:
        return {"SAMPLE_KEEPERS": f"{how} {step} {first} {last} {self._file}"}

    def have_been(self, count: int) -> Callable[[], bool]:
        """Whether so many came to the step."""
        return lambda: self._file.stat().st_size >= count


@pytest.fixture
def maintenance_pids(tmp_path: Path) -> MaintenancePids:
    return MaintenancePids(tmp_path)


def test_a_maintenance_process_that_dies_before_it_is_ready_is_replaced(
    runworkers: Run, journal: str, maintenance_pids: MaintenancePids
) -> None:
    fault = maintenance_pids.fault("kill", "getting_ready", 1, 2)
    run = runworkers(constants=BRISK, **fault)
    jobs.write.enqueue(journal, "a")
    eventually(all_archived(1), what=lambda: run.output)
    assert run.output.count("starting another") >= 1


def test_maintenance_processes_that_fail_each_time_are_told_of_once_and_counted(
    runworkers: Run, maintenance_pids: MaintenancePids
) -> None:
    fault = maintenance_pids.fault("raise", "getting_ready", 1, 1_000)
    run = runworkers(constants=BRISK, **fault)
    eventually(maintenance_pids.have_been(5), within=60)
    run.signal(signal.SIGTERM)
    assert run.wait() == 0
    assert run.output.count("RuntimeError: a maintenance process of the tests") == 2
    assert run.output.count("starting another") == 1


def test_a_maintenance_process_that_dies_while_its_host_stops_is_replaced(
    runworkers: Run, journal: str
) -> None:
    """Without it no lease is renewed, and jobs would be killed within their grace."""
    run = runworkers("--threads", "1", "--lease", "2")
    run.started()
    jobs.await_leave.enqueue(journal, "a")
    eventually(lambda: starts(journal))
    maintenance = maintenance_of(run)
    run.signal(signal.SIGTERM)
    eventually(lambda: "stopping" in run.output)
    kill(maintenance)
    eventually(lambda: is_gone(maintenance))
    before = Worker.objects.get().renewed_at
    eventually(lambda: Worker.objects.get().renewed_at > before)
    jobs.give_leave(journal, "a")

    assert run.wait() == 0
    assert ends(journal) == {"a": 1}
    assert "could not be renewed" not in run.output


def test_workers_lose_their_lease_if_nobody_lives_long_enough_to_renew_it(
    runworkers: Run, journal: str, maintenance_pids: MaintenancePids
) -> None:
    """Others may start its jobs then, whatever this host is up to."""
    fault = maintenance_pids.fault("kill", "renewing", 2, 1_000)
    run = runworkers("--threads", "1", "--lease", "2", constants=BRISK, **fault)
    (pid,) = run.started()
    jobs.write.enqueue(journal, "a", seconds=60)
    eventually(lambda: starts(journal))
    kill(maintenance_of(run))
    eventually(lambda: is_gone(pid), what=lambda: run.output)
    assert "its lease could not be renewed in time; killing it" in run.output


def test_a_drain_ends_also_if_a_maintenance_process_died_meanwhile(
    runworkers: Run, journal: str, maintenance_pids: MaintenancePids
) -> None:
    jobs.die.enqueue(journal)
    fault = maintenance_pids.fault("kill", "recovering", 1, 2)
    run = runworkers("--drain", "--threads", "1", constants=BRISK, **fault)
    assert run.wait() == 0
    assert starts(journal) == {"die": 3}
    assert archived()[0].error_message == "killed by signal 9 (SIGKILL)"


def test_the_last_deaths_are_dealt_with_also_if_the_maintenance_process_dies_of_them(
    runworkers: Run, journal: str, maintenance_pids: MaintenancePids
) -> None:
    fault = maintenance_pids.fault("kill", "recovering", 1, 1)
    flags = (*LEASE, "--grace", "0.1", "--cancel-grace", "0.1")
    run = runworkers("--threads", "1", *flags, constants=BRISK, **fault)
    run.started()
    jobs.linger.enqueue(journal, "a")
    eventually(lambda: starts(journal))
    run.signal(signal.SIGTERM)
    assert run.wait() == 0

    runworkers("--threads", "1", *flags)
    eventually(all_archived(1))
    assert starts(journal) == {"a": 2}
    assert not Failure.objects.filter(end="crashed").exists()


def test_a_supervisor_that_cannot_fork_tries_again(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--processes", "2", constants=BRISK, SAMPLE_FORKS_FAIL="4")
    jobs.write.enqueue(journal, "a")
    eventually(all_archived(1), what=lambda: run.output)
    assert run.output.count("No process can be started") == 1
