"""``jobqueue top``: the job queue on a screen that is kept up to date."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.status import interval
from django_jobqueue.management.jobqueue.status_contents import parts, read
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.verbs.declarations import Argument, flag

MISSING: Final = (
    'jobqueue top draws with textual: pip install "django-jobqueue[top]". Without it: '
    "jobqueue status --watch."
)


class Top(Subcommand):
    name = "top"
    summary = "Show and operate the job queue on a screen."
    description = """\
Show queues, job types, workers, running jobs and failures on a live screen. The
keys:

  Tab, 1 to 5   another pane
  arrows        choose a line
  Enter         details: the job and why it waits, the failure and its
                traceback, the stacks of the worker
  s, S          sort by the next column; the other way round
  /             only lines that contain a text; Esc ends that
  p             pause or resume the queue or job type
  d             drain or resume the worker
  c             cancel the running job
  q             quit

A key that changes something asks first, and shows its command. It needs
textual: pip install "django-jobqueue[top]"; without it, see jobqueue status
--watch."""
    epilog = """\
While the database cannot be used, or does not answer, the last figures stay and
a line says so. Meanwhile logs go to files only, not to the terminal."""

    arguments = (
        Argument(
            "every",
            "Refresh after this many seconds (default: 1).",
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
            from django_jobqueue.contrib.console.top_screen.app import Top as Screen
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


@contextmanager
def no_log_on_terminal() -> Iterator[None]:
    """Let log handlers that write to the terminal, over the screen, write nothing until
    the block ends; files are written."""
    handlers = [
        handler
        for handler in _handlers()
        if not handler.stream.closed and handler.stream.isatty()
    ]
    with open(os.devnull, "w") as nowhere:
        streams = [handler.setStream(nowhere) for handler in handlers]
        try:
            yield
        finally:
            for handler, stream in zip(handlers, streams, strict=True):
                handler.setStream(stream)


def _handlers() -> list[logging.StreamHandler[Any]]:
    loggers = [logging.root, *logging.Logger.manager.loggerDict.values()]
    handlers = {
        handler
        for logger in loggers
        if isinstance(logger, logging.Logger)
        for handler in logger.handlers
    }
    return [one for one in handlers if type(one) is logging.StreamHandler]
