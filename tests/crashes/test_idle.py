"""A real ``runworkers`` that has had nothing to do for some time, and what wakes it.
Its renewals tell from outside that it is calm: they are for longer then."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Worker
from django_jobqueue.processes.process_table import IDLE_EXTENSION
from tests.crashes.seen import is_gone, kill, maintenance_of, starts
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

LEASE = 3.0  # seconds
CONSTANTS = {
    **BRISK,
    # Who is calm rests for an hour, so that nothing but a wake ends it.
    "host.supervisor.IDLE_CHECKS": LEASE / 3_600,
    "workers.worker_main.IDLE_CHECKS": LEASE / 3_600,
    "processes.process_table.IDLE_AFTER": 0.1,
    "workers.worker_main.IDLE_AFTER": 0.1,
}


def is_calm() -> bool:
    """Whether the one worker was last renewed for longer."""
    row = Worker.objects.filter(state="running").first()
    if row is None:
        return False
    return (row.lease_until - row.renewed_at).total_seconds() > LEASE * IDLE_EXTENSION


@pytest.fixture
def calm(runworkers: Callable[..., RunWorkers]) -> RunWorkers:
    run = runworkers("--threads", "2", "--lease", str(LEASE), constants=CONSTANTS)
    run.started()
    run_a_job()  # wakes whoever rested while others started
    eventually(is_calm)
    return run


def run_a_job() -> None:
    job = jobs.add.enqueue(1)
    eventually(lambda: archived(id=job.id))


def test_a_job_is_run_and_gives_a_calm_worker_an_ordinary_lease(
    calm: RunWorkers, journal: str
) -> None:
    jobs.await_leave.enqueue(journal)
    eventually(lambda: starts(journal))
    eventually(lambda: not is_calm())
    jobs.give_leave(journal)
    eventually(lambda: len(archived()) == 2)
    eventually(is_calm)
    assert calm.stop() == 0


def ask(worker: Worker, what: str, state: str) -> None:
    operations.ask_workers([worker.id], what)
    eventually(lambda: Worker.objects.get(id=worker.id).state == state)


def test_a_calm_worker_does_what_operators_ask(calm: RunWorkers) -> None:
    worker = Worker.objects.get(state="running")
    for _ in range(2):  # it is the same process that goes on
        ask(worker, "drain", "draining")
        ask(worker, "resume", "running")
    run_a_job()
    eventually(is_calm)
    operations.request_stack_dumps([worker.id])
    eventually(lambda: Worker.objects.get(id=worker.id).stack_dump)
    eventually(is_calm)
    operations.ask_workers([worker.id], "stop")
    assert calm.wait() == 0
    assert not Worker.objects.filter(state="running").exists()


def test_a_calm_process_that_is_killed_or_stopped_is_replaced(calm: RunWorkers) -> None:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        (pid,) = calm.workers()
        os.kill(pid, number)
        eventually(lambda before=pid: calm.workers() not in ([], [before]))
        run_a_job()
        eventually(is_calm)
    assert "is stopped (SIGSTOP); killing it" in calm.output
    maintenance = maintenance_of(calm)
    kill(maintenance)
    eventually(lambda: is_gone(maintenance) and "starting another" in calm.output)
    run_a_job()
    eventually(is_calm)
