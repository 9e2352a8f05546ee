"""``jobqueue status``: what waits, what runs, who works, what fails."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from typing import Any, Final, NoReturn

from django.core.management.base import CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import OperationalError, connections

from django_jobqueue.conf import conf
from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.management.jobqueue import health_check, rich_output
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.status_data import (
    WINDOW,
    Figures,
    read,
)
from django_jobqueue.management.jobqueue.status_tables import parts
from django_jobqueue.management.jobqueue.subcommand import Subcommand
from django_jobqueue.management.jobqueue.text_tables import Paragraph, Part
from django_jobqueue.management.jobqueue.time_formats import duration
from django_jobqueue.stats.unclaimed_jobs import notices
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.leases import LeaseRow
from django_jobqueue.store.reading.stats import CAP, Recent, WorkerRow

SHORTEST: Final = 0.1  # seconds between two looks

sleep = time.sleep


class Status(Subcommand):
    """Shows the state of the job queue, once or again and again."""

    name = "status"
    summary = "Show queues, workers, throughput, failures and pauses."
    description = f"""\
Show what waits, what runs, who works, what fails and what is paused.

Queues         by queue and job type: ready jobs, later ones (waiting for their
               time), retrying ones (those of the later that ran before),
               running ones, and how long the oldest ready job has waited.
               Nothing is counted above {CAP:,}.
Workers        running jobs (short ones are claimed ahead, so there may be more
               than slots), slots, what is left of the lease, memory, age and
               queues; also those that ended in the last 10 minutes.
Standby        which host is active, of those that runworkers --standby started.
The last hour  what workers counted, by the minute: attempts that succeeded,
               failed for good or are to be retried; waits and run times. A
               percentile is the upper bound of its bucket, at most 58 % above
               the true value.

It says so when no worker is alive, and when jobs wait that no living worker
would claim. With --check the first line and the exit code are those of
jobqueue health."""
    epilog = f"""\
--format json prints one object, and with --watch one line for each look.
Durations are in seconds, times in ISO 8601, and what is unknown is null:

  time        when the figures were read, by the database's clock
  depth_cap   {CAP}; ready, later or retrying above it means "more than that"
  window      seconds that throughput and failures cover
  notices     list of {{code, message, queue, job_type, jobs}}; the codes are
              no_worker, all_draining, queue_not_served, job_type_not_known
              and queue_not_served_for_job_type
  queues      list of {{queue, job_type, ready, later, retrying, running,
              oldest}}
  workers     list of {{id, name, state, alive, running, threads, async_slots,
              lease, memory (bytes), age, queues (null is every queue),
              listening, release, end, remote}}
  standby     list of {{name, active (null if no host is), host, since, lease,
              fence}}, of runworkers --standby
  throughput  list of {{queue, job_type, succeeded, failed, retried, other,
              wait_p95, run_p50, run_p95}}
  failures    list of {{error_class, job_type, count, last, message}}
  paused      list of {{what, name, by, reason, since, until}}
  health      with --check, see jobqueue health"""
    wrong_use = health_check.CANNOT_TELL

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --format and --watch."""
        parser.add_argument(
            "--format",
            choices=["text", "json"],
            default="text",
            help="text is for people, json for programs (default: text).",
        )
        parser.add_argument(
            "--watch",
            nargs="?",
            const="2",
            metavar="SECONDS",
            help="Refresh every so many seconds (default: 2), until Ctrl-C.",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="Compare with thresholds first: exit code 0 is healthy, 2 is not, and "
            "3 if it cannot be told.",
        )
        health_check.add_thresholds(parser, only_with="--check")

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Show it once, or until Ctrl-C."""
        as_json = options["format"] == "json"
        if options["check"]:
            show_checked(console, options, as_json=as_json)
        if options["watch"] is None:
            figures = read()
            if as_json:
                console.print(json.dumps(as_object(figures), indent=2))
            else:
                console.show(parts(figures))
            return
        every = interval("--watch", options["watch"])
        try:
            watch(console, every, as_json=as_json)
        except KeyboardInterrupt:
            if console.is_terminal:
                console.print()  # below the ^C


def interval(flag: str, text: str) -> float:
    """The seconds between two looks, which this flag gave. Raises CommandError."""
    every = duration(flag, text).total_seconds()
    if every < SHORTEST:
        raise CommandError(f"{flag}: must be at least {SHORTEST} s.")
    return every


def show_checked(
    console: Console, options: dict[str, Any], *, as_json: bool
) -> NoReturn:
    """Show it once, after what jobqueue health says, and exit with its code."""
    if options["watch"] is not None:
        raise CommandError("--check and --watch exclude each other.", returncode=3)
    wanted = health_check.wanted(options)
    try:
        figures = read()
        judged = health_check.read(wanted, figures.present)
    except (DatabaseError, JobQueueError) as error:
        health_check.cannot_tell(console, error, as_json=as_json)
    if as_json:
        checked = {"health": health_check.as_object(judged)}
        console.print(json.dumps({**as_object(figures), **checked}, indent=2))
    else:
        console.print(health_check.first_line(judged))
        console.print()
        console.show(parts(figures))
    console.stdout.flush()
    sys.exit(health_check.exit_code(judged))


def watch(console: Console, every: float, *, as_json: bool) -> None:
    """Show it again and again; an outage of the database is shown, too."""
    if console.rich is not None and not as_json:
        with rich_output.picture(console.rich) as picture:
            while True:
                picture.update(rich_output.group(_parts_or_outage()), refresh=True)
                sleep(every)
    while True:
        try:
            figures = read()
        except OperationalError as error:
            console.warn(_outage(error))
        else:
            if as_json:
                console.print(json.dumps(as_object(figures)))
            else:
                console.show(parts(figures))
                console.print()
        console.stdout.flush()
        sleep(every)


def _parts_or_outage() -> list[Part]:
    try:
        return parts(read())
    except OperationalError as error:
        return [Paragraph(_outage(error))]


def _outage(error: OperationalError) -> str:
    connections[conf.database].close()
    text = " ".join(str(error).split())
    return f"The database cannot be used, trying again: {text}"


def as_object(figures: Figures) -> dict[str, Any]:
    """The figures as JSON has them; the keys are stable."""
    return {
        "time": figures.present.time.isoformat(),
        "depth_cap": CAP,
        "window": WINDOW,
        "notices": [notice._asdict() for notice in notices(figures.present)],
        "queues": [_fields(depth) for depth in figures.present.depths],
        "workers": [_worker(worker) for worker in figures.present.workers],
        "standby": [_standby(row) for row in figures.standby],
        "throughput": [_throughput(recent) for recent in figures.recent],
        "failures": [_fields(failure) for failure in figures.failures],
        "paused": [_fields(closed) for closed in figures.present.closed],
    }


def _fields(row: Any) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in row.__slots__}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def _worker(worker: WorkerRow) -> dict[str, Any]:
    fields = _fields(worker)
    memory, remote = fields.pop("rss"), fields.pop("is_remote")
    return {**fields, "memory": memory, "alive": is_alive(worker), "remote": remote}


def _standby(row: LeaseRow) -> dict[str, Any]:
    return {
        "name": row.name.removeprefix(STANDBY),
        "active": row.holder if row.state == "held" else None,
        "host": row.host,
        "since": row.since.isoformat(),
        "lease": row.left,
        "fence": row.fence,
    }


def _throughput(recent: Recent) -> dict[str, Any]:
    fields = _fields(recent)
    del fields["run"], fields["wait"]
    return {
        **fields,
        "wait_p95": recent.wait_time(0.95),
        "run_p50": recent.run_time(0.5),
        "run_p95": recent.run_time(0.95),
    }
