"""The thread that talks to the database, so that the screen never waits for it."""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import Error as DatabaseError
from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.contrib.console.top_screen.panes import (
    Command,
    Pane,
    Snapshot,
    read,
)
from django_jobqueue.exceptions import JobQueueError


class Audience(Protocol):
    """Who is told, in the reader's thread."""

    def has_read(self, snapshot: Snapshot) -> None:
        """There are new figures."""

    def has_failed(self, problem: str) -> None:
        """The database cannot be used now."""

    def has_run(self, command: Command, output: str, *, is_answer: bool) -> None:
        """A command has run; ``is_answer``: to show something, not to change it."""


class Reader(threading.Thread):
    """Reads the figures again and again, and runs commands in between."""

    def __init__(self, audience: Audience, every: float, pane: Pane) -> None:
        super().__init__(name="jobqueue-top", daemon=True)
        self._audience = audience
        self._every = every  # seconds
        self._pane = pane
        self._requests: queue.SimpleQueue[Callable[[], None] | None] = (
            queue.SimpleQueue()
        )

    def refresh(self, pane: Pane | None = None) -> None:
        """Read at once, for this pane from now on."""
        self._pane = pane or self._pane
        self._requests.put(self._refresh)

    def run_commands(self, commands: Sequence[Command], *, is_answer: bool) -> None:
        """Run these, one after the other, and tell what they printed."""
        self._requests.put(lambda: self._run(commands, is_answer=is_answer))

    def stop(self) -> None:
        """End after what it is at."""
        self._requests.put(None)

    def run(self) -> None:
        """Until it is stopped."""
        try:
            self._work()
        finally:
            connections.close_all()

    def _work(self) -> None:
        due = time.monotonic()
        while True:
            try:
                request = self._requests.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                request = self._refresh
            if request is None:
                return
            if request == self._refresh:
                due = time.monotonic() + self._every
            request()

    def _refresh(self) -> None:
        needs = self._pane.needs
        try:
            snapshot = read(running=needs == "running", groups=needs == "groups")
        except (DatabaseError, JobQueueError) as error:
            self._audience.has_failed(self._explained(error))
        else:
            self._audience.has_read(snapshot)

    def _run(self, commands: Sequence[Command], *, is_answer: bool) -> None:
        printed = []
        for command in commands:
            out = io.StringIO()
            try:
                call_command(
                    "jobqueue", *command, stdout=out, stderr=out, no_color=True
                )
            except CommandError as error:
                out.write(str(error))
            except (DatabaseError, JobQueueError) as error:
                out.write(self._explained(error))
            except SystemExit:  # of a command whose exit code is an answer
                pass
            printed.append(out.getvalue().strip())
        text = "\n\n".join(filter(None, printed))
        self._audience.has_run(commands[0], text, is_answer=is_answer)
        if not is_answer:
            self._refresh()

    def _explained(self, error: Exception) -> str:
        with suppress(DatabaseError):
            connections[conf.database].close()
        return " ".join(str(error).split())
