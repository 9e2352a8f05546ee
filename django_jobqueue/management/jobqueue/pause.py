"""``jobqueue pause``: stop the claiming of job types or queues."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.subcommand_verbs import add_format
from django_jobqueue.management.jobqueue.time_formats import (
    DURATIONS,
    duration,
    local,
    moment,
)
from django_jobqueue.models import JobType, Queue
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.pauses import is_paused


class Pause(Subcommand):
    """Pauses job types or queues."""

    name = "pause"
    summary = "Stop the claiming of job types, or of queues."
    positionals = "names"
    description = """\
Pause job types, or with --queue queues: none of their jobs is claimed from the
next claim on, in the whole cluster. What runs goes on; what is enqueued waits.

  jobqueue pause shop.send_receipt --for 30m --reason "mail server is down"
  jobqueue pause shop.send_receipt --until 2026-11-20T14:30
  jobqueue pause mail reports --queue"""
    epilog = """\
--format json prints one object: paused (names), until (null: until they are
resumed), replaced (those that were paused already)."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be paused, why and for how long."""
        add_names(parser, "paused")
        parser.add_argument("--reason", default="", help="Shown with the pause.")
        end = parser.add_mutually_exclusive_group()
        end.add_argument(
            "--for",
            dest="for_",
            metavar="DURATION",
            help=f"The pause ends by itself after this: {DURATIONS}.",
        )
        end.add_argument(
            "--until",
            metavar="TIME",
            help="The pause ends by itself then: an ISO time such as 2026-11-20T14:30.",
        )
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Pause all of them or none."""
        names = names_of(options)
        until = _end(options)
        if options["queue"]:
            warn_of_unknown(console, names)
        before = _paused(names, queues=options["queue"])
        paused = operations.pause(
            names,
            queues=options["queue"],
            reason=options["reason"],
            resume_at=until,
            by=by(),
        )
        if options["format"] == "json":
            values = {"paused": sorted(paused), "until": until, "replaced": before}
            console.print(as_json(values))
            return
        what = "Queues" if options["queue"] else "Job types"
        end = "until they are resumed" if until is None else f"until {local(until)}"
        console.info(f"{what} paused {end}: {', '.join(sorted(paused))}.")
        if before:
            listed = ", ".join(before)
            console.warn(f"Paused already; reason and end are replaced: {listed}.")


def _paused(names: list[str], *, queues: bool) -> list[str]:
    """Which of these are paused now."""
    model: Any = Queue if queues else JobType
    rows = model.objects.using(conf.database).filter(pk__in=names).order_by("pk")
    return [row.name for row in rows if is_paused(row)]


def _end(options: dict[str, Any]) -> datetime | None:
    """When the pause is to end by itself. Raises CommandError."""
    now = database_now()
    if options["for_"] is not None:
        return now + duration("--for", options["for_"])
    if options["until"] is None:
        return None
    until = moment("--until", options["until"], now=now)
    if until <= now:
        raise CommandError(f"--until: {local(until)} is past.")
    return until


def add_names(parser: CommandParser, verb: str) -> None:
    """Add the names, and whether they are queues."""
    parser.add_argument(
        "names", metavar="NAME", nargs="+", help=f"Job types to be {verb}."
    )
    parser.add_argument(
        "--queue", action="store_true", help="The names are those of queues."
    )


def names_of(options: dict[str, Any]) -> list[str]:
    """The names that were given, each once. Raises CommandError."""
    names = list(dict.fromkeys(options["names"]))
    for name in names:
        problem = queue_problem(name) if options["queue"] else None
        if problem:
            raise CommandError(f"The name of a queue {problem}")
    return names
