"""``manage.py jobqueue``: look at the job queue, and operate it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.utils import translation

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.database import check, explained, using
from django_jobqueue.management.jobqueue.parsers import Parser, Subparsers
from django_jobqueue.management.jobqueue.subcommand import Table
from django_jobqueue.rooms import named
from django_jobqueue.text.sanitizing import is_utf8

ENDED_BY_PIPE: Final = 141  # as shells report a program that SIGPIPE ended

# In the order of the help. Each is imported when it is asked for.
SUBCOMMANDS: Final = Table(
    {
        name: f"django_jobqueue.management.jobqueue.{place}"
        for name, place in {
            "status": "status.Status",
            "health": "health_check.HealthCheck",
            "doctor": "doctor.Doctor",
            "metrics": "metrics.Metrics",
            "show": "show.Show",
            "why": "show.Why",
            "types": "types.Types",
            "workers": "workers.Workers",
            "hosts": "hosts.Hosts",
            "limits": "limits.Limits",
            "failures": "failures.Failures",
            "operations": "bulk_operations.BulkOperations",
            "enqueue": "enqueue.Enqueue",
            "run": "run.Run",
            "replay": "replay.COMMAND",
            "cancel": "job_verbs.CANCEL",
            "run-now": "job_verbs.RUN_NOW",
            "reschedule": "job_verbs.RESCHEDULE",
            "fail": "job_verbs.FAIL",
            "release": "job_verbs.RELEASE",
            "pause": "pauses.PAUSING",
            "resume": "pauses.RESUMING",
            "override": "override.Override",
            "prune": "prune.COMMAND",
            "sleep": "sleep.SLEEPING",
            "wake": "sleep.WAKING",
            "roles": "roles.Roles",
            "completion": "completion.Completion",
        }.items()
    }
    | named("subcommands")
)


class Command(BaseCommand):
    """One command with a subcommand for each thing that operators do."""

    help = (
        "Look at the job queue, and operate it. Each subcommand has a --help of its "
        "own. Workers are started by manage.py runworkers."
    )
    requires_system_checks = ("jobqueue",)
    missing_args_message = (
        f"Say what to do: {', '.join(SUBCOMMANDS)}. See manage.py jobqueue --help."
    )

    def create_parser(
        self, prog_name: str, subcommand: str, **options: Any
    ) -> CommandParser:
        """Take no abbreviations: --data must never be --database."""
        return super().create_parser(
            prog_name, subcommand, allow_abbrev=False, **options
        )

    def add_arguments(self, parser: CommandParser) -> None:
        """A parser for each subcommand."""
        subparsers: Any = parser.add_subparsers(
            action=Subparsers,
            parser_class=Parser,
            dest="subcommand",
            required=True,
            metavar="SUBCOMMAND",
            title="subcommands",
        )
        subparsers.use(SUBCOMMANDS)

    def execute(self, *args: Any, **options: Any) -> Any:
        """Do it, and end quietly where nobody reads the output any more: ``| head``."""
        try:
            output = super().execute(*args, **options)
            self.stdout.flush()
        except BrokenPipeError:
            # Python itself writes the rest at its end.
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(ENDED_BY_PIPE)
        return output

    def handle(self, *, subcommand: str, **options: Any) -> None:
        """Do what was asked for. Raises CommandError."""
        for name, value in options.items():  # bytes of a shell that are no text
            if name not in ("file", "lines") and not is_utf8(value):
                raise CommandError(f"{name.replace('_', '-')}: this is not UTF-8.")
        is_json = options.get("format") == "json"
        streams = (self.stdout, self.stderr, self.style)
        console = Console(*streams, options["verbosity"], is_json=is_json)
        chosen = SUBCOMMANDS[subcommand]
        # Text is English, numbers in it too: "1.000 jobs" would be read as one.
        language = translation.get_language() if is_json else "en"
        with using(options["database"]), translation.override(language):
            if chosen.reads_jobs:
                check(conf.database)
            try:
                chosen.run(console, options)
            except JobQueueError as error:
                raise CommandError(str(error)) from error
            except DatabaseError as error:
                text = explained(error)
                if text is None:
                    raise
                raise CommandError(text) from error
