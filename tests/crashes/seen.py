"""What handlers noted, and what became of jobs and of processes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers

# Jobs that must run alone are looked for often.
QUARANTINE = {
    "host.maintenance.rescuer.QUARANTINE_EVERY": 0.05,
    "host.restarts.SHORTEST_QUARANTINE_PAUSE": 0.1,
}
LEASE = ("--lease", "60")  # whatever happens in a test does not happen by a lease


def starts(journal: str) -> Counter[str]:
    return Counter(words[1] for words in jobs.notes(journal) if words[0] == "start")


def ends(journal: str) -> Counter[str]:
    return Counter(words[1] for words in jobs.notes(journal) if words[0] == "end")


def all_archived(count: int) -> Callable[[], bool]:
    return lambda: len(archived()) == count and not queued()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody reaped has."""
    return not jobs.is_running(pid)


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def maintenance_of(run: RunWorkers) -> int:
    """The process id of its maintenance process; it has no exporter."""
    (pid,) = set(children(run.process.pid)) - set(run.workers())
    return pid


@contextmanager
def locked(own: OwnConnection, table: str) -> Iterator[None]:
    """Nobody can write to this table meanwhile."""
    with own.raw() as raw, raw.transaction():
        raw.execute("SET LOCAL statement_timeout = 0")
        raw.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        raw.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        yield


def waiting_for_locks(application: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND application_name = %s AND datname = current_database()",
            [application],
        )
        return int(cursor.fetchone()[0])
