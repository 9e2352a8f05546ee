"""A real ``runworkers`` that has had nothing to do for as long as a lease, and what
wakes it. Its renewals tell from outside that it is calm: they are for longer then."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Worker
from django_jobqueue.processes.process_table import IDLE_EXTENSION
from tests.crashes.test_kills import children, kill
from tests.crashes.test_stopping import ask
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

LEASE = 3.0  # seconds


def longest_lease() -> float:
    """Seconds for which the running worker was last renewed."""
    row = Worker.objects.get(state="running")
    return (row.lease_until - row.renewed_at).total_seconds()


@pytest.fixture
def calm(runworkers: Callable[..., RunWorkers]) -> RunWorkers:
    """One worker process that rests, and all who look after it. They rest for an hour,
    so that nothing but a wake ends it."""
    looks = {"SAMPLE_CALM_LOOKS": str(LEASE / 3_600)}
    run = runworkers("--threads", "2", "--lease", str(LEASE), **looks)
    run.started()
    eventually(lambda: longest_lease() > LEASE * IDLE_EXTENSION, what="idle")
    return run


def test_a_job_is_run_and_gives_a_calm_worker_an_ordinary_lease(
    calm: RunWorkers, journal: str
) -> None:
    jobs.write.enqueue(journal, seconds=1.0)
    eventually(lambda: jobs.notes(journal))
    eventually(lambda: longest_lease() < LEASE * IDLE_EXTENSION)
    assert archived() == []
    eventually(archived)
    eventually(lambda: longest_lease() > LEASE * IDLE_EXTENSION, what="idle again")
    assert calm.stop() == 0


def test_a_calm_worker_is_drained_and_resumed(calm: RunWorkers) -> None:
    worker = Worker.objects.get(state="running")
    ask(worker, "drain", "draining")
    ask(worker, "resume", "running")
    jobs.add.enqueue(1)
    eventually(archived)


def test_a_calm_worker_says_where_it_is(calm: RunWorkers) -> None:
    worker = Worker.objects.get(state="running")
    operations.request_stack_dumps([worker.id])
    eventually(lambda: Worker.objects.get(id=worker.id).stack_dump)


def test_a_calm_worker_that_is_to_stop_ends_and_leaves_nobody(calm: RunWorkers) -> None:
    operations.ask_workers([Worker.objects.get(state="running").id], "stop")
    assert calm.wait() == 0
    assert not Worker.objects.filter(state="running").exists()


def test_a_calm_worker_that_is_killed_is_replaced(calm: RunWorkers) -> None:
    (pid,) = calm.workers()
    kill(pid)
    eventually(lambda: calm.workers() not in ([], [pid]))
    jobs.add.enqueue(1)
    eventually(archived)


def test_a_calm_worker_that_is_stopped_is_killed_and_replaced(
    calm: RunWorkers,
) -> None:
    (pid,) = calm.workers()
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: calm.workers() not in ([], [pid]))
    assert "is stopped (SIGSTOP); killing it" in calm.output


def test_a_calm_host_goes_on_when_its_maintenance_process_is_killed(
    calm: RunWorkers,
) -> None:
    (maintenance,) = set(children(calm.process.pid)) - set(calm.workers())
    kill(maintenance)
    eventually(lambda: "starting another" in calm.output)
    jobs.add.enqueue(1)
    eventually(archived)
    eventually(lambda: longest_lease() > LEASE * IDLE_EXTENSION, what="idle again")
