"""``jobqueue bench``: what this database and this machine do, measured."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.batches import INTERRUPTED
from django_jobqueue.management.jobqueue.bench_run import NAME, Figures, measure
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import (
    YES,
    Subcommand,
)
from django_jobqueue.store import bench_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import Column, Listing, Type
from django_jobqueue.verbs.declarations import Argument, Takes

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
    """Measures enqueues, a drain, pickups and WAL."""

    name = "bench"
    summary = "Measure how fast this database is with jobs."
    description = f"""\
Measure what this machine and this database do, with jobs that do nothing: how
fast they are enqueued, one by one and many at once, how fast a worker in this
process ends them, how soon it starts a job that comes while it is idle, and how
much WAL a job takes.

The jobs are of the type {NAME}, in a queue of their own. No other
worker knows their type, so none takes them. All that they leave is deleted in
the end, also after Ctrl-C; what a killed one left, --clean deletes.

  jobqueue bench
  jobqueue bench --jobs 100000 --threads 8 --yes

Beside them are the figures of the machine of the benchmark page: two cores,
PostgreSQL 18 on the same machine. What else goes on here is in the figures, and
in the WAL."""
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
        Argument(
            "clean", "Only delete what a bench that was killed has left.", Takes.FLAG
        ),
        YES._replace(help="Do not ask where DEBUG is off."),
    )

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Measure, delete, print. Raises CommandError."""
        db = DjangoDatabase()
        if options["clean"]:
            _clean(console, db)
            return
        if bench_rows.are_left(db, NAME):
            raise CommandError(
                "Jobs of a bench are here: it runs, or was killed. Delete them: "
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
    if not bench_rows.delete(db, NAME):
        console.warn(
            "Some jobs run, of a worker that has not stopped. Delete them later: "
            "jobqueue bench --clean"
        )


def _make_sure(console: Console, options: dict[str, Any]) -> None:
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
