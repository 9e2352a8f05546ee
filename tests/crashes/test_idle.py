"""A real ``runworkers`` that has had nothing to do for some time, and what wakes it:
its renewals tell that it is calm, since they are for longer. Several processes
share the listener of their host."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from django.db import connection, transaction

from django_jobqueue import operations
from django_jobqueue.models import Worker
from django_jobqueue.processes.process_table import IDLE_EXTENSION
from tests.crashes.seen import children, ends, is_gone, kill, maintenance_of, starts
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Start = Callable[..., RunWorkers]

LEASE = 2.0  # seconds
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
def calm(runworkers: Start) -> RunWorkers:
    run = runworkers("--threads", "2", "--lease", str(LEASE), constants=CONSTANTS)
    run.started()
    run_a_job()  # wakes whoever rested while others started
    eventually(is_calm)
    return run


def run_a_job() -> None:
    job = jobs.add.enqueue(1)
    eventually(lambda: archived(id=job.id))


def ask(worker: Worker, what: str, state: str) -> None:
    operations.ask_workers([worker.id], what)
    eventually(lambda: Worker.objects.get(id=worker.id).state == state)


def test_a_calm_worker_does_what_jobs_and_operators_ask(
    calm: RunWorkers, journal: str
) -> None:
    jobs.await_leave.enqueue(journal)
    eventually(lambda: starts(journal))
    eventually(lambda: not is_calm())  # with a job it has an ordinary lease
    jobs.give_leave(journal)
    eventually(lambda: len(archived()) == 2)
    eventually(is_calm)
    worker = Worker.objects.get(state="running")
    for _ in range(2):  # it is the same process that goes on
        ask(worker, "drain", "draining")
        ask(worker, "resume", "running")
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


# Nobody finds a job by a poll, not even at first.
FLEET = ("--threads", "2", "--poll-interval", "3600", "--processes")
NO_POLLS = {**BRISK, "workers.claiming.next_step.FIRST": ()}


def listen(count: int) -> None:
    eventually(lambda: Worker.objects.filter(listening=True).count() == count)


def take_all_slots(journal: str, words: str, *, at_once: bool = False) -> None:
    """Wait until the jobs with these words run at the same time, and end them. They are
    enqueued one by one, or in one transaction."""
    with transaction.atomic() if at_once else nullcontext():
        for word in words:
            jobs.await_leave.enqueue(journal, word)
    eventually(lambda: starts(journal).keys() >= {*words}, what="all slots to be busy")
    for word in words:
        jobs.give_leave(journal, word)
    eventually(lambda: ends(journal).keys() >= {*words})


def run_one_by_one(journal: str, words: str) -> None:
    for word in words:
        jobs.write.enqueue(journal, word)
        eventually(lambda written=word: ends(journal)[written])  # type: ignore[misc]


def test_an_idle_fleet_shares_its_connections_and_all_of_it_has_room(
    runworkers: Start, journal: str
) -> None:
    """One connection a process, and at most four a host. No job waits for processes
    whose handlers hold the interpreter's lock."""
    run = runworkers(*FLEET, "3", constants=NO_POLLS)
    run.started(3)
    listen(3)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name "
            "LIKE 'jobqueue %%' AND datname = current_database()"
        )
        assert cursor.fetchone()[0] <= 3 + 4

    take_all_slots(journal, "123456")
    listen(3)
    for number in (1, 2):
        jobs.hold_lock_for_good.enqueue(journal, how="asleep in C")
        eventually(lambda wanted=number: starts(journal)["hold"] == wanted)  # type: ignore[misc]
    run_one_by_one(journal, "abcdef")


def test_a_fleet_whose_maintenance_process_is_stopped_polls(
    runworkers: Start, journal: str
) -> None:
    run = runworkers(
        *FLEET, "2", constants={**NO_POLLS, "host.process_health.PAUSED_TOO_LONG": 600}
    )
    run.started(2)
    listen(2)
    os.kill(maintenance_of(run), signal.SIGSTOP)
    run_one_by_one(journal, "a")


def test_what_one_host_has_no_room_for_or_does_not_hear_is_run_by_the_other(
    runworkers: Start, journal: str
) -> None:
    flags = (*FLEET, "2", "--threads", "1")
    hosts = [runworkers(*flags, constants=NO_POLLS) for _ in range(2)]
    for host in hosts:
        host.started(2)
    listen(4)
    take_all_slots(journal, "1234")
    listen(4)
    take_all_slots(journal, "abcd", at_once=True)
    listen(4)
    pid = hosts[0].process.pid
    for stopped in (pid, *children(pid)):
        os.kill(stopped, signal.SIGSTOP)
    run_one_by_one(journal, "ABCDEF")
