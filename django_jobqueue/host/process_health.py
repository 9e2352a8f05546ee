"""Kills child processes that cannot go on: stopped by SIGSTOP, hanging, or running
another program."""

from __future__ import annotations

import logging
import time
from typing import Final

from django_jobqueue.domain.log_events import Event
from django_jobqueue.host.child import Child
from django_jobqueue.host.children import Children
from django_jobqueue.host.hangs import Hang, HangWatch, is_silent
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable

logger = logging.getLogger("django_jobqueue.supervisor")

UNRESPONSIVE: Final = {"event": Event.WORKER_UNRESPONSIVE}  # of a record

PAUSED_TOO_LONG: Final = 1.5  # seconds after which a stopped (SIGSTOP) child is killed
CHECK_EVERY: Final = 0.5  # seconds, while the supervisor looks more often


class ProcessHealth:
    """The checks that only processes need, since only a process can be killed.

    A handler that holds the interpreter's lock lets its worker see neither a timeout
    nor a cancellation, so the supervisor enforces both.
    """

    def __init__(self, process_table: ProcessTable, children: Children) -> None:
        self._process_table = process_table
        self._children = children
        self._hangs = HangWatch()
        self._next_at = 0.0  # time.monotonic() of the next check

    def kill_paused(self) -> None:
        """Kill the children that have been stopped (SIGSTOP) for too long."""
        self._children.maintenance.end_if_paused(PAUSED_TOO_LONG)
        now = time.monotonic()
        if self._children.exporter is not None:
            self._children.exporter.end_if_paused(PAUSED_TOO_LONG)
        for child in self._children:
            if not child.is_killed and child.is_paused_for(PAUSED_TOO_LONG, now):
                logger.error(
                    "Worker %s is stopped (SIGSTOP); killing it",
                    child.pid,
                    extra=UNRESPONSIVE,
                )
                child.kill()

    def kill_unresponsive(self) -> None:
        """Kill the workers that hang, or have become another program."""
        now = time.monotonic()
        if now < self._next_at:
            return
        self._next_at = now + CHECK_EVERY
        for child in self._children:
            entry = self._process_table.entry(child.entry_number)
            if child.is_killed:
                continue  # it takes a moment to end
            if not child.has_open_pipe() and child.poll_state() is None:
                logger.error(
                    "Worker %s: a handler closed its pipe to the supervisor, or "
                    "replaced it with another program; killing it",
                    child.pid,
                    extra=UNRESPONSIVE,
                )
                child.runs_another_program = True
                child.kill()
            elif entry.held:
                self._kill_if_hanging(child, entry)

    def ended(self, child: Child) -> None:
        """This process is dead, so the jobs that it ran at the end are known."""
        self._hangs.forget(child.pid)
        if child.hang is not None:
            child.hang = child.hang.among(
                self._process_table.attempts(child.entry_number).running()
            )

    def _kill_if_hanging(self, child: Child, entry: ProcessEntry) -> None:
        """Enforce the timeouts of a worker that cannot."""
        if entry.ignores_cancel and is_silent(entry.watched / 1_000):
            logger.error(
                "Worker %s: a cancelled job holds the interpreter's lock, so it cannot "
                "receive the cancellation; killing the process",
                child.pid,
                extra=UNRESPONSIVE,
            )
            child.hang = Hang()
        else:
            running = self._process_table.attempts(child.entry_number).running()
            watched, now = entry.watched / 1_000, time.monotonic()
            child.hang = self._hangs.judge(child.pid, running, watched, now)
            if child.hang is not None:
                logger.error(
                    "Worker %s: a job holds the interpreter's lock, and a timeout in "
                    "this process is over; killing it. Jobs: %s",
                    child.pid,
                    ", ".join(map(str, child.hang.timed_out or child.hang.suspects)),
                    extra=UNRESPONSIVE,
                )
        if child.hang is not None:
            child.kill()
