"""``jobqueue bench``: what this database and this machine do, measured."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

import django_jobqueue
from django_jobqueue import job
from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.management.jobqueue.batches import INTERRUPTED
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import YES, Options, Subcommand
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import Column, Listing, Type
from django_jobqueue.verbs.declarations import Argument, Takes, flag

BATCH: Final = 5_000  # rows deleted in a transaction

# Jobs that run are ended by their worker, or rescued, and deleted by the next call.
DELETE_QUEUED: Final = """
DELETE FROM jobqueue_queuedjob
 WHERE id = ANY (ARRAY (SELECT id FROM jobqueue_queuedjob
                         WHERE job_type = %(job_type)s AND status = 'queued'
                         LIMIT %(batch)s
                           FOR UPDATE SKIP LOCKED))
RETURNING id
"""
DELETE_ARCHIVED: Final = """
DELETE FROM jobqueue_archivedjob
 WHERE id = ANY (ARRAY (SELECT id FROM jobqueue_archivedjob
                         WHERE job_type = %(job_type)s
                         LIMIT %(batch)s))
RETURNING id
"""
DELETE_FIGURES: Final = (
    "DELETE FROM jobqueue_rollup WHERE job_type = %(job_type)s",
    "DELETE FROM jobqueue_total WHERE job_type = %(job_type)s",
    "DELETE FROM jobqueue_archivedcount WHERE job_type = %(job_type)s",
)
DELETE_TYPE: Final = """
DELETE FROM jobqueue_jobtype AS type
 WHERE type.name = %(job_type)s
   AND NOT EXISTS (SELECT FROM jobqueue_queuedjob AS job
                    WHERE job.job_type = type.name)
"""
LEFT: Final = """
SELECT (SELECT count(*) FROM jobqueue_queuedjob WHERE job_type = %(job_type)s)
       + (SELECT count(*) FROM (SELECT FROM jobqueue_archivedjob
                                 WHERE job_type = %(job_type)s LIMIT 1) AS one)
"""
WAL: Final = """
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
"""

NAME: Final = "jobqueue.bench"
SINGLE: Final = 10  # of so many jobs one is enqueued by itself
MOST_SINGLE: Final = 2_000
PICKUPS: Final = 200
LONGEST: Final = 600.0  # seconds that a worker may take
DATA: Final = {"order_id": 7, "note": "two hundred bytes, as in a shop: " + "x" * 140}


class Figures(NamedTuple):
    """What was measured."""

    enqueued_singly: float  # jobs a second, each in a transaction of its own
    enqueued_together: float  # jobs a second, by enqueue_many
    drained: float  # jobs a second, by one process
    pickup: float  # median milliseconds from the enqueue to the start of the handler
    pickup_p95: float
    wal_bytes: float  # of a job, from its enqueue to the archive


class Marks:
    """When handlers start: called by the worker, in this process."""

    def __init__(self) -> None:
        self.first = 0.0  # time.perf_counter()
        self.last = 0.0
        self.started = threading.Event()

    def start(self) -> None:
        """A handler starts."""
        self.last = time.perf_counter()
        if not self.first:
            self.first = self.last
        self.started.set()

    def reset(self) -> None:
        """Before the next measurement."""
        self.first = self.last = 0.0
        self.started.clear()


Step = Callable[[str], None]


def measure(count: int, threads: int, step: Step) -> Figures:
    """Measure with so many jobs, in a queue of its own, and tell each step. Whoever
    calls removes the rows, whatever happens."""
    queue, marks = f"{NAME}.{os.getpid()}", Marks()
    with _handler(marks, queue) as handler:
        db = DjangoDatabase()
        wal = wal_bytes(db)
        step("Enqueueing one by one")
        few = min(MOST_SINGLE, max(1, count // SINGLE))
        singly = _per_second(few, lambda: [handler.enqueue(**DATA) for _ in range(few)])
        step("Enqueueing many at once")
        many = max(1, count - few)
        together = _per_second(
            many, lambda: handler.enqueue_many(DATA for _ in range(many))
        )
        step("Draining")
        with django_jobqueue.worker(
            queues=[queue], threads=threads, async_slots=0, grace=5
        ) as worker:
            worker.wait_idle(LONGEST)
            drained = (few + many) / max(marks.last - marks.first, 1e-6)
            wal = wal_bytes(db) - wal
            step("Enqueueing for an idle worker")
            waits = sorted(_pickups(handler, marks))
    return Figures(
        enqueued_singly=singly,
        enqueued_together=together,
        drained=drained,
        pickup=statistics.median(waits),
        pickup_p95=waits[int(len(waits) * 0.95)],
        wal_bytes=wal / (few + many),
    )


def _pickups(handler: Any, marks: Marks) -> Iterator[float]:
    """Milliseconds from the enqueue of single jobs to the start of each."""
    for _ in range(PICKUPS):
        time.sleep(0.01)  # the worker is idle again
        marks.reset()
        began = time.perf_counter()
        handler.enqueue(**DATA)
        if not marks.started.wait(LONGEST):
            raise TimeoutError("The worker did not start a job.")
        yield (marks.first - began) * 1_000


@contextmanager
def _handler(marks: Marks, queue: str) -> Iterator[Any]:
    """The handler, known to no other process."""

    @job(name=NAME, queue=queue, max_attempts=1)
    def handler(order_id: int, note: str) -> None:
        marks.start()

    try:
        job_types.declare(DjangoDatabase(), [handler.declaration])
        yield handler
    finally:
        registry.remove(NAME)


def _per_second(count: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


JOBS: Final = 20_000
THREADS: Final = 4
# Medians of five runs of this command, with its defaults, on the machine of the
# benchmark page, in November 2026: two cores, Python 3.11, and PostgreSQL 18 with its
# own defaults, over a socket.
REFERENCE: Final = Figures(
    enqueued_singly=3_080,
    enqueued_together=88_000,
    drained=45_900,
    pickup=1.25,
    pickup_p95=1.74,
    wal_bytes=1_929,
)
LABELS: Final = {
    "enqueued_singly": "enqueue(), jobs/s",
    "enqueued_together": "enqueue_many(), jobs/s",
    "drained": "one worker process, jobs/s",
    "pickup": "pickup, median ms",
    "pickup_p95": "pickup, 95 % within ms",
    "wal_bytes": "WAL, bytes a job",
}


class Bench(Subcommand):
    name = "bench"
    summary = "Measure how fast this database is with jobs."
    description = f"""\
Measure what this machine and this database do, with jobs that do nothing: how
fast they are enqueued, one by one and many at once, how fast a worker in this
process finishes them, how soon an idle worker starts a job, and how much WAL a
job takes.

The jobs are of the type {NAME}, in a queue of their own. No other
worker knows their type, so none takes them. Everything is deleted at the end,
also after Ctrl-C; --clean deletes what a killed bench left behind.

  jobqueue bench
  jobqueue bench --jobs 100000 --threads 8 --yes

The second column is the machine of the benchmark page: two cores, PostgreSQL 18
on the same machine. Other load here affects the figures and the WAL."""
    json = f"""one object: jobs, threads, here and benchmark_machine, each with
    {", ".join(LABELS)}: jobs a second, milliseconds of pickups, and bytes of a job."""
    arguments = (
        Argument(
            "jobs",
            f"With so many jobs (default: {JOBS:,}).",
            Takes.POSITIVE,
            default=JOBS,
        ),
        Argument(
            "threads",
            f"Threads of the worker (default: {THREADS}).",
            Takes.POSITIVE,
            default=THREADS,
        ),
        flag("clean", "Only delete the jobs that a killed bench left."),
        YES._replace(help="Do not ask where DEBUG is off."),
    )

    def run(self, console: Console, options: Options) -> None:
        db = DjangoDatabase()
        if options["clean"]:
            _clean(console, db)
            return
        if are_left(db, NAME):
            raise CommandError(
                "A bench is running here, or was killed. Delete its jobs: "
                "jobqueue bench --clean"
            )
        _make_sure(console, options)
        jobs, threads = options["jobs"], options["threads"]
        try:
            with _interrupted_by_sigterm():
                figures = measure(jobs, threads, console.step)
        except KeyboardInterrupt:
            raise CommandError("Interrupted.", returncode=INTERRUPTED) from None
        except TimeoutError as error:
            raise CommandError(str(error)) from None
        finally:
            # A signal may have come while a statement was sent: nothing more can be
            # sent on that connection.
            connections[conf.database].close()
            _clean(console, db)
        if console.is_json:
            each = {"here": figures, "benchmark_machine": REFERENCE}
            named = {
                key: {name: getattr(one, name) for name in LABELS}
                for key, one in each.items()
            }
            console.json({"jobs": jobs, "threads": threads, **named})
        else:
            console.rows(measured(figures), LABELS.items())


def _clean(console: Console, db: DjangoDatabase) -> None:
    if not delete(db, NAME):
        console.warn(
            "Some jobs run, of a worker that has not stopped. Delete them later: "
            "jobqueue bench --clean"
        )


def _make_sure(console: Console, options: Options) -> None:
    if settings.DEBUG or options["yes"]:
        return
    name = settings.DATABASES[conf.database]["NAME"]
    console.make_sure(
        f"DEBUG is off. {numbers.number(options['jobs'])} jobs will be enqueued, "
        f"run and deleted on the database {name}. Go on?",
        "Nothing was measured.",
    )


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM be as Ctrl-C, so that the rows are deleted."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only that one can
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def measured(figures: Figures) -> Listing:
    """The columns of what was measured."""
    return Listing(
        (
            Column("", "Measured", value=lambda label: label[1], breaks=True),
            Column("", "Here", NUMBERS, lambda label: getattr(figures, label[0])),
            Column(
                "",
                "Benchmark machine",
                NUMBERS,
                lambda label: getattr(REFERENCE, label[0]),
            ),
        )
    )


def _text(value: float) -> str:
    return numbers.decimal(value, 2) if value < 100 else numbers.number(round(value))


NUMBERS: Final = Type(_text, right=True)


def delete(db: Database, job_type: str) -> bool:
    """Delete the jobs of this type, queued and archived, its figures and its row;
    False if some are left, because they run."""
    params = {"job_type": job_type, "batch": BATCH}
    for statement in (DELETE_QUEUED, DELETE_ARCHIVED):
        while db.fetch(statement, params):
            pass
    for figures in DELETE_FIGURES:
        db.run(figures, params)
    if are_left(db, job_type):
        return False
    db.run(DELETE_TYPE, params)
    return True


def are_left(db: Database, job_type: str) -> bool:
    """True if jobs of this type are there, waiting, running or archived."""
    return bool(db.fetch(LEFT, {"job_type": job_type})[0][0])


def wal_bytes(db: Database) -> int:
    """How many bytes of WAL the server has written, in all."""
    written: int = db.fetch(WAL)[0][0]
    return written
