"""``jobqueue resume``: let paused job types or queues be claimed again."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser

from django_jobqueue import operations
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.pause import add_names, names_of
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by

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

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be resumed."""
        add_names(parser, "resumed")

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Resume all of them or none."""
        names = names_of(options)
        resumed = operations.resume(names, queues=options["queue"], by=by())
        many, one = _WORDS[options["queue"]]
        if resumed:
            console.info(f"{many} resumed: {', '.join(sorted(resumed))}.")
        for name in names:
            if name not in resumed:
                console.warn(f"The {one} {name!r} was not paused.")
