"""Checks of what surrounds the job queue: how hosts are stopped, connections, the disk
of the server."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import QueuedStatus, WorkerState
from django_jobqueue.models import Host, QueuedJob, Worker
from django_jobqueue.models.fields import ClockTimestamp
from django_jobqueue.processes import identity
from django_jobqueue.stats import stop_timeout
from django_jobqueue.stats.findings import (
    MOST_NAMED,
    Finding,
    Findings,
    Level,
    note,
    ok,
    problem,
)
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history
from django_jobqueue.store.reading.server_facts import ServerFacts, TableFacts
from django_jobqueue.text import numbers

STOP_MARGIN: Final = 10.0  # seconds that a stop takes beside GRACE, at most
OF_HOST: Final = 3  # connections
OF_PROCESS: Final = 4  # beside one for each thread
MOST_NEEDED: Final = 0.9  # of the connections allowed
JOB_SIZE: Final = 440  # bytes in the archive, with its indexes
ENOUGH_ROWS: Final = 1_000  # to know it better
ARCHIVE: Final = "jobqueue_archivedjob"
DAY: Final = 86_400.0
FOREVER: Final = 365 * DAY  # what is kept forever is counted for a year
LATELY: Final = timedelta(days=1)
TIGHT: Final = 0.5  # of the free disk


def grace(hosts: Sequence[Host]) -> Findings:
    """Check that nothing kills hosts before they have stopped."""
    here = [one for one in hosts if one.host == identity.host() and not one.embedded]
    pids = [int(pid) for one in here if (pid := one.name.rpartition(":")[2]).isdigit()]
    needed = conf.grace + STOP_MARGIN
    short = [one for one in stop_timeout.stop_timeouts(pids) if one.seconds < needed]
    for one in short:
        level = Level.PROBLEM if one.is_certain else Level.NOTE
        doubt = "" if one.is_certain else ", unless configured otherwise"
        text = (
            f"{one.who} kills a host {numbers.run_time(one.seconds)} after asking it "
            f"to stop{doubt}; with GRACE a stop takes up to {numbers.run_time(needed)}."
        )
        advice = f"Set {one.option} to {math.ceil(needed)} s, or a shorter GRACE."
        yield Finding("grace", level, text, advice)
    if not short:
        yield ok("grace", "Nothing known here kills a host before it has stopped.")


def sleep(db: DjangoDatabase) -> Findings:
    """Check that hosts may work in this database."""
    reason = database_identity.read_sleep(db)
    if reason is None:
        yield ok("asleep", "Hosts may work in this database.")
    else:
        yield problem(
            "asleep",
            f"{reason.value} Hosts that start here do nothing.",
            "If this is the real database, not a copy, run jobqueue wake.",
        )


def moves() -> Findings:
    """Find moves of jobs to another database that were killed."""
    jobs = QueuedJob.objects.using(conf.database)
    of_move = jobs.filter(status=QueuedStatus.RUNNING, worker_id=OuterRef("pk"))
    movers = Worker.objects.using(conf.database).filter(
        Exists(of_move), state=WorkerState.MOVING, lease_until__lt=ClockTimestamp()
    )
    killed = movers.order_by("pk").values_list("name", "host", "pid")[:MOST_NAMED]
    for name, host, pid in killed:
        yield problem(
            "moves",
            f"A {name} on {host}:{pid} has ended, but still holds jobs, which run "
            "nowhere.",
            "Run the same jobqueue move --to … again, which continues with them. If "
            "the other database is lost, or was restored or upgraded since: jobqueue "
            "release, with the ids of these jobs.",
        )
    if not killed:
        yield ok("moves", "No move to another database was left unfinished.")


def connections_needed(facts: ServerFacts, hosts: Sequence[Host]) -> Findings:
    """Check that the server allows all connections that the living hosts may need."""
    needed = sum(
        OF_HOST + one.processes * (one.threads + OF_PROCESS)
        for one in hosts
        if not one.embedded
    )
    text = (
        f"The living hosts need up to {numbers.number(needed)} connections, of "
        f"{numbers.number(facts.connections_allowed)} that the server allows."
    )
    advice = "Raise max_connections, use a pooler, or run fewer processes or threads."
    share = needed / max(1, facts.connections_allowed)
    if share > 1:
        yield problem("connections-needed", text, advice)
    elif share > MOST_NEEDED:
        yield note("connections-needed", text, advice)
    else:
        yield ok("connections-needed", text)


def disk(
    db: DjangoDatabase, facts: ServerFacts, tables: Sequence[TableFacts], now: datetime
) -> Findings:
    """Check that the disk has room for the archive at the present rate."""
    more = _growth(db, tables, now)
    text = (
        f"At the rate of the last day, the archive grows by {numbers.megabytes(more)} "
        "until retention holds it"
    )
    free = _free(facts)
    if free is None:
        yield ok("disk", f"{text}; the server's disk cannot be seen from here.")
        return
    text += f"; {numbers.megabytes(free)} are free on the server's disk."
    advice = "Set a shorter JOBQUEUE['RETENTION'], or get a larger disk."
    if more > free:
        yield problem("disk", text, advice)
    elif more > free * TIGHT:
        yield note("disk", text, advice)
    else:
        yield ok("disk", text)


def _growth(db: DjangoDatabase, tables: Sequence[TableFacts], now: datetime) -> int:
    """Bytes by which the archive grows until as much is deleted as is added."""
    archive = next((one for one in tables if one.name == ARCHIVE), None)
    rows, size = (archive.live_rows, archive.size) if archive else (0, 0)
    each = size / rows if rows >= ENOUGH_ROWS else JOB_SIZE
    total = history.Counts()
    for counts in history.counts(db, now - LATELY).values():
        total.add(counts)
    ages = {
        status: FOREVER if age is None else age
        for status, age in conf.retention.items()
    }
    # The roll-ups do not tell cancelled jobs from other ends, few as they are.
    jobs = total.succeeded * ages["succeeded"] + total.failed * ages["failed"]
    return max(0, round(jobs / DAY * each) - size)


def _free(facts: ServerFacts) -> int | None:
    """Free bytes where the server keeps its data; None if that is not seen."""
    if not (facts.is_local and facts.folder):
        return None
    try:
        return shutil.disk_usage(facts.folder).free
    except OSError:
        return None
