"""``jobqueue status``: what waits, what runs, who works, what fails."""

from __future__ import annotations

import sys
import time
from typing import Final, NoReturn

from django.core.management.base import CommandError
from django.db import Error as DatabaseError
from django.db import OperationalError, connections

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.management.jobqueue import health_check, rich_output
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.inputs import duration
from django_jobqueue.management.jobqueue.status_contents import (
    as_object,
    keys,
    parts,
    read,
)
from django_jobqueue.management.jobqueue.subcommand import FORMAT, Options, Subcommand
from django_jobqueue.management.jobqueue.text_tables import Paragraph, Part
from django_jobqueue.store.reading.stats import CAP
from django_jobqueue.verbs.declarations import Argument, flag, group

SHORTEST: Final = 0.1  # seconds between two looks

sleep = time.sleep


class Status(Subcommand):
    name = "status"
    summary = "Show queues, workers, throughput, failures and pauses."
    description = f"""\
Show waiting and running jobs, workers, failures and pauses.

Queues         by queue and job type: ready jobs, later ones (waiting for their
               time), retrying ones (later ones that ran before), running ones,
               and the oldest ready job's wait. Counts stop at {CAP:,}.
Workers        running jobs (short ones are claimed ahead, so there may be more
               than slots), slots, remaining lease, memory, age and queues;
               also those that ended in the last 10 minutes.
Standby        the active host among those started by runworkers --standby.
The last hour  by the minute: attempts that succeeded, failed for good or are to
               be retried; waits and run times. A percentile is the upper bound
               of its bucket, at most 58 % above the true value.

A notice says when no worker is alive, or when jobs wait that no living worker
would claim. With --check the first line and the exit code are those of
jobqueue health."""
    json = f"""one object, and with --watch one line per refresh. Durations are in
    seconds, times in ISO 8601, and unknown values are null:

{keys()}"""
    wrong_use = health_check.CANNOT_TELL

    arguments = (
        FORMAT,
        Argument(
            "watch",
            "Refresh after this many seconds (default: 2), until Ctrl-C.",
            "SECONDS",
            or_else="2",
        ),
        flag(
            "check",
            "Compare with thresholds first: exit code 0 is healthy, 2 is not, and 3 is "
            "unknown.",
        ),
        *group("thresholds, with --check", health_check.THRESHOLDS),
    )

    def run(self, console: Console, options: Options) -> None:
        if options["check"]:
            show_checked(console, options)
        if options["watch"] is None:
            figures = read()
            if console.is_json:
                console.json(as_object(figures), ascii=True)
            else:
                console.show(parts(figures))
            return
        every = interval("--watch", options["watch"])
        try:
            watch(console, every)
        except KeyboardInterrupt:
            if console.is_terminal:
                console.print()  # below the ^C


def interval(flag: str, text: str) -> float:
    """The seconds between two looks, which this flag gave. Raises CommandError."""
    every = duration(flag, text).total_seconds()
    if every < SHORTEST:
        raise CommandError(f"{flag}: must be at least {SHORTEST} s.")
    return every


def show_checked(console: Console, options: Options) -> NoReturn:
    """Show it once, after what jobqueue health says, and exit with its code."""
    if options["watch"] is not None:
        raise CommandError("--check and --watch exclude each other.", returncode=3)
    wanted = health_check.wanted(options)
    try:
        figures = read()
        judged = health_check.read(wanted, figures.present)
    except (DatabaseError, JobQueueError) as error:
        health_check.cannot_tell(console, error)
    if console.is_json:
        checked = {"health": health_check.as_object(judged)}
        console.json({**as_object(figures), **checked}, ascii=True)
    else:
        console.print(health_check.first_line(judged))
        console.print()
        console.show(parts(figures))
    console.stdout.flush()
    sys.exit(health_check.exit_code(judged))


def watch(console: Console, every: float) -> None:
    """Show it again and again; an outage of the database is shown, too."""
    if console.rich is not None and not console.is_json:
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
            if console.is_json:
                console.json(as_object(figures), ascii=True, indent=None)
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
