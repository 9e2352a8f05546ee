"""``manage.py jobqueue``: look at the job queue, and operate it."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.utils import translation

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.management.jobqueue.alerts import Alerts
from django_jobqueue.management.jobqueue.bench import Bench
from django_jobqueue.management.jobqueue.bulk_operations import BulkOperations
from django_jobqueue.management.jobqueue.cancel import Cancel
from django_jobqueue.management.jobqueue.completion import Completion
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.database import (
    check,
    explained,
    using,
)
from django_jobqueue.management.jobqueue.doctor import Doctor
from django_jobqueue.management.jobqueue.dump import Dump, Load
from django_jobqueue.management.jobqueue.enqueue import Enqueue
from django_jobqueue.management.jobqueue.failures import Failures
from django_jobqueue.management.jobqueue.health import HealthCheck
from django_jobqueue.management.jobqueue.hosts import Hosts
from django_jobqueue.management.jobqueue.leases import Leases
from django_jobqueue.management.jobqueue.limits import Limits
from django_jobqueue.management.jobqueue.metrics import Metrics
from django_jobqueue.management.jobqueue.move import Move
from django_jobqueue.management.jobqueue.override import Override
from django_jobqueue.management.jobqueue.pause import Pause
from django_jobqueue.management.jobqueue.personal_data import PersonalData
from django_jobqueue.management.jobqueue.prune import Prune
from django_jobqueue.management.jobqueue.queued_verbs import (
    FailNow,
    Release,
    Reschedule,
    RunNow,
)
from django_jobqueue.management.jobqueue.replay import Replay
from django_jobqueue.management.jobqueue.resume import Resume
from django_jobqueue.management.jobqueue.roles import Roles
from django_jobqueue.management.jobqueue.run import Run
from django_jobqueue.management.jobqueue.schedule import ShowSchedule
from django_jobqueue.management.jobqueue.schedules import Schedules
from django_jobqueue.management.jobqueue.show import Show
from django_jobqueue.management.jobqueue.sleep import Sleep, Wake
from django_jobqueue.management.jobqueue.status import Status
from django_jobqueue.management.jobqueue.subcommand import (
    HelpFormatter,
    Names,
    Parser,
    Subcommand,
)
from django_jobqueue.management.jobqueue.top import Top
from django_jobqueue.management.jobqueue.types import Types
from django_jobqueue.management.jobqueue.why import Why
from django_jobqueue.management.jobqueue.workers import Workers
from django_jobqueue.rooms import load, rooms

ENDED_BY_PIPE: Final = 141  # as shells report a program that SIGPIPE ended

SUBCOMMANDS: Final[dict[str, Subcommand]] = {
    subcommand.name: subcommand
    for subcommand in (
        Status(),
        Top(),
        HealthCheck(),
        Doctor(),
        Metrics(),
        Show(),
        Why(),
        Types(),
        Workers(),
        Hosts(),
        Leases(),
        Limits(),
        Schedules(),
        ShowSchedule(),
        Failures(),
        BulkOperations(),
        Alerts(),
        Enqueue(),
        Run(),
        Replay(),
        Cancel(),
        RunNow(),
        Reschedule(),
        FailNow(),
        Release(),
        Pause(),
        Resume(),
        Override(),
        Prune(),
        Dump(),
        Load(),
        Move(),
        Sleep(),
        Wake(),
        PersonalData(),
        Roles(),
        Bench(),
        Completion(),
        *(load(path)() for room in rooms() for path in room.subcommands.values()),
    )
}


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
        subparsers = parser.add_subparsers(
            dest="subcommand",
            required=True,
            metavar="SUBCOMMAND",
            title="subcommands",
            parser_class=Parser,
        )
        for name, subcommand in SUBCOMMANDS.items():
            own = subparsers.add_parser(
                name,
                help=subcommand.summary,
                description=subcommand.description,
                epilog=subcommand.epilog,
                formatter_class=HelpFormatter,
                allow_abbrev=False,
            )
            own.positionals = subcommand.positionals
            own.siblings = subparsers.choices
            own.verbs = subcommand.verbs
            own.wrong_use = subcommand.wrong_use
            subcommand.add_arguments(own)
            _add_general_arguments(own)
        subparsers.choices = Names(subparsers.choices)

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
        console = Console(self.stdout, self.stderr, self.style, options["verbosity"])
        chosen = SUBCOMMANDS[subcommand]
        # Text is English, numbers in it too: "1.000 jobs" would be read as one.
        is_text = options.get("format") != "json"
        language = "en" if is_text else translation.get_language()
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


def _add_general_arguments(parser: CommandParser) -> None:
    """Django's own options, so that they are understood after the subcommand, too."""
    general = parser.add_argument_group("general options")
    general.add_argument(
        "-v",
        "--verbosity",
        type=int,
        choices=[0, 1, 2, 3],
        default=argparse.SUPPRESS,
        help="0 prints only what was asked for: no bar, no summary, no remarks.",
    )
    general.add_argument(
        "--database",
        metavar="ALIAS",
        help="Alias of the database that holds the jobs, instead of "
        "JOBQUEUE['DATABASE'].",
    )
    for flag in ("--settings", "--pythonpath"):
        general.add_argument(flag, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    for flag in ("--traceback", "--no-color", "--force-color", "--skip-checks"):
        general.add_argument(
            flag,
            action="store_true",
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )
