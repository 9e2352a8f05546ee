"""``jobqueue top``: the job queue on a screen that is kept up to date."""

from __future__ import annotations

import sys
from typing import Final

from django.core.management.base import CommandError

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.status import interval
from django_jobqueue.management.jobqueue.status_tables import parts, read
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.management.jobqueue.top_screen.log_handlers import (
    no_log_on_terminal,
)
from django_jobqueue.verbs.declarations import Argument, flag

MISSING: Final = (
    'jobqueue top draws with textual: pip install "django-jobqueue[top]". Without it: '
    "jobqueue status --watch."
)


class Top(Subcommand):
    name = "top"
    summary = "Show and operate the job queue on a screen."
    description = """\
Show queues, job types, workers, running jobs and failures on a screen that is
kept up to date. The keys:

  Tab, 1 to 5   another pane
  arrows        choose a line
  Enter         all there is to know of it: the job and why it waits, the
                failure and its traceback, the stacks of the worker
  s, S          sort by the next column; the other way round
  /             only lines that contain a text; Esc ends that
  p             pause or resume the queue or job type
  d             drain or resume the worker
  c             cancel the running job
  q             quit

Whatever changes something asks first, and says which command it runs. It needs
textual: pip install "django-jobqueue[top]"; without it, see jobqueue status
--watch."""
    epilog = """\
While the database cannot be used, or does not answer, the last figures stay and
a line says so. Logs are not written to the terminal meanwhile; files are."""

    arguments = (
        Argument(
            "every",
            "Refresh every so many seconds (default: 1).",
            "SECONDS",
            default="1",
        ),
        flag("once", "Print what jobqueue status prints, and end."),
    )

    def run(self, console: Console, options: Options) -> None:
        every = interval("--every", options["every"])
        if options["once"]:
            console.show(parts(read()))
            return
        try:
            from django_jobqueue.management.jobqueue.top_screen.app import Top as Screen
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in ("textual", "rich"):
                raise
            raise CommandError(MISSING) from error
        # The keys come from the input, and textual draws on the error output.
        if not (console.is_terminal and sys.stdin.isatty() and sys.stderr.isatty()):
            raise CommandError(
                "jobqueue top needs a terminal. In a script: jobqueue status --format "
                "json."
            )
        with no_log_on_terminal():
            Screen(every).run()
