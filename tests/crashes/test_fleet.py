"""Several worker processes of a host, which share its listener, and several hosts, of
which one is told of a job."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from django.db import connection, transaction

from django_jobqueue.models import Worker
from tests.crashes.test_kills import children, ends, starts
from tests.sample import jobs
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

# Nobody finds a job by a poll, not even at first.
FLAGS = ("--processes", "3", "--threads", "2", "--poll-interval", "3600")


@pytest.fixture
def idle_fleet(runworkers: Callable[..., RunWorkers]) -> RunWorkers:
    """Three processes, which want to be notified."""
    run = runworkers(*FLAGS, SAMPLE_SELDOM_POLLS="yes")
    run.started(3)
    eventually(lambda: Worker.objects.filter(listening=True).count() == 3)
    return run


def test_an_idle_fleet_has_a_connection_a_process_and_at_most_four_a_host(
    idle_fleet: RunWorkers,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name "
            "LIKE 'jobqueue %%' AND datname = current_database()"
        )
        assert cursor.fetchone()[0] <= 3 + 4


def test_no_job_waits_for_processes_whose_handlers_hold_the_interpreters_lock(
    idle_fleet: RunWorkers, journal: str
) -> None:
    for number in (1, 2):
        jobs.hold_lock_for_good.enqueue(journal, how="asleep in C")
        eventually(lambda wanted=number: starts(journal)["hold"] == wanted)  # type: ignore[misc]
    for word in "abcdef":
        jobs.write.enqueue(journal, word)
        eventually(lambda written=word: ends(journal)[written])  # type: ignore[misc]


def test_a_fleet_whose_maintenance_process_is_stopped_polls(
    idle_fleet: RunWorkers, journal: str
) -> None:
    (maintenance,) = set(children(idle_fleet.process.pid)) - set(idle_fleet.workers())
    os.kill(maintenance, signal.SIGSTOP)
    jobs.write.enqueue(journal, "a")
    eventually(lambda: ends(journal)["a"], what=idle_fleet.output)


def test_a_backlog_is_shared_by_all_processes(
    idle_fleet: RunWorkers, journal: str
) -> None:
    for number in range(6):
        jobs.write.enqueue(journal, str(number), seconds=600)
    eventually(lambda: len(starts(journal)) == 6, what="all slots to be busy")


@pytest.fixture
def hosts(runworkers: Callable[..., RunWorkers]) -> list[RunWorkers]:
    """Two hosts with four slots each, which want to be notified."""
    flags = ("--processes", "2", "--threads", "2", "--poll-interval", "3600")
    runs = [runworkers(*flags, SAMPLE_SELDOM_POLLS="yes") for _ in range(2)]
    for run in runs:
        run.started(2)
    eventually(lambda: Worker.objects.filter(listening=True).count() == 4)
    return runs


def test_no_job_waits_for_a_host_that_is_stopped(
    hosts: list[RunWorkers], journal: str
) -> None:
    pid = hosts[0].process.pid
    for stopped in (pid, *children(pid)):
        os.kill(stopped, signal.SIGSTOP)
    for word in "abcdefgh":
        jobs.write.enqueue(journal, word)
        eventually(lambda written=word: ends(journal)[written])  # type: ignore[misc]


@pytest.mark.parametrize("in_transaction", [False, True])
def test_what_one_host_has_no_room_for_is_run_by_the_other(
    hosts: list[RunWorkers], journal: str, in_transaction: bool
) -> None:
    with transaction.atomic() if in_transaction else nullcontext():
        for number in range(8):
            jobs.write.enqueue(journal, str(number), seconds=600)
    eventually(lambda: len(starts(journal)) == 8, what="all slots to be busy")
