"""``jobqueue resume``: let paused job types or queues be claimed again."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser

from django_jobqueue import operations
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.pause import add_names, names_of
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.subcommand_verbs import add_format

_WORDS: Final = {True: ("Queues", "queue"), False: ("Job types", "job type")}


class Resume(Subcommand):
    """Resumes job types or queues."""

    name = "resume"
    summary = "Let paused job types, or queues, be claimed again."
    positionals = "names"
    description = """\
Resume job types, or with --queue queues: their jobs are claimed again at once.

  jobqueue resume shop.send_receipt
  jobqueue resume mail reports --queue"""
    epilog = """\
--format json prints one object: resumed (names), not_paused (those that were
not)."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be resumed."""
        add_names(parser, "resumed")
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Resume all of them or none."""
        names = names_of(options)
        resumed = operations.resume(names, queues=options["queue"], by=by())
        idle = [name for name in names if name not in resumed]
        if options["format"] == "json":
            console.print(as_json({"resumed": sorted(resumed), "not_paused": idle}))
            return
        many, one = _WORDS[options["queue"]]
        if resumed:
            console.info(f"{many} resumed: {', '.join(sorted(resumed))}.")
        for name in idle:
            console.warn(f"The {one} {name!r} was not paused.")
