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
from tests.crashes.seen import children, ends, maintenance_of, starts
from tests.sample import jobs
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
# Nobody finds a job by a poll, not even at first.
FLAGS = ("--threads", "2", "--poll-interval", "3600", "--processes")
CONSTANTS = {**BRISK, "processes.idle.FIRST": ()}


def listen(count: int) -> None:
    """Wait until so many workers want to be notified."""
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
    runworkers: Run, journal: str
) -> None:
    """One connection a process, and at most four a host. No job waits for processes
    whose handlers hold the interpreter's lock."""
    run = runworkers(*FLAGS, "3", constants=CONSTANTS)
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
    runworkers: Run, journal: str
) -> None:
    run = runworkers(
        *FLAGS, "2", constants={**CONSTANTS, "host.process_health.PAUSED_TOO_LONG": 600}
    )
    run.started(2)
    listen(2)
    os.kill(maintenance_of(run), signal.SIGSTOP)
    run_one_by_one(journal, "a")


def test_what_one_host_has_no_room_for_or_does_not_hear_is_run_by_the_other(
    runworkers: Run, journal: str
) -> None:
    hosts = [runworkers(*FLAGS, "2", constants=CONSTANTS) for _ in range(2)]
    for host in hosts:
        host.started(2)
    listen(4)
    take_all_slots(journal, "12345678")
    listen(4)
    take_all_slots(journal, "abcdefgh", at_once=True)
    listen(4)
    pid = hosts[0].process.pid
    for stopped in (pid, *children(pid)):
        os.kill(stopped, signal.SIGSTOP)
    run_one_by_one(journal, "ABCDEFGH")
