"""Kills worker processes that may no longer run."""

from __future__ import annotations

import logging
import time
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.host.child import Child
from django_jobqueue.host.children import Children
from django_jobqueue.host.hangs import Hang, HangWatch, is_silent
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable

logger = logging.getLogger("django_jobqueue.supervisor")

PAUSED_TOO_LONG: Final = 1.5  # seconds after which a stopped (SIGSTOP) child is killed
CLOCKS_EVERY: Final = 0.5  # seconds, while it looks oftener: at a stop, in a drain


class Fencing:
    """What a supervisor does to its children when they do not do it themselves.

    Others may start the jobs of a worker whose lease was not renewed. A worker in which
    a handler holds the interpreter's lock sees neither that nor any timeout.
    """

    def __init__(self, process_table: ProcessTable, children: Children) -> None:
        self._process_table = process_table
        self._children = children
        self._hangs = HangWatch()
        self._next_at = 0.0  # time.monotonic() of the next look at their clocks

    def look(self) -> None:
        """Look at everybody."""
        self._children.maintenance.end_if_paused(PAUSED_TOO_LONG)
        now = time.monotonic()
        sees_clocks = now >= self._next_at
        if sees_clocks:
            self._next_at = now + CLOCKS_EVERY
        for child in self._children:
            if child.is_killed:
                continue  # it takes its time
            entry = self._process_table.entry(child.entry)
            if child.is_paused_for(PAUSED_TOO_LONG, now):
                logger.error("Worker %s is stopped (SIGSTOP); killing it", child.pid)
                child.kill()
            elif not self._is_leased(child, entry):
                why = "was given up" if entry.lost else "could not be renewed in time"
                logger.error("Worker %s: its lease %s; killing it", child.pid, why)
                child.fenced = True
                child.kill()
            elif sees_clocks and not child.listens() and child.look() is None:
                logger.error(
                    "Worker %s: a handler closed its pipe to the supervisor, or put "
                    "another program in its place; killing it",
                    child.pid,
                )
                child.has_left = True
                child.kill()
            elif sees_clocks and entry.held:
                self._see_clock_for(child, entry)

    def ended(self, child: Child) -> None:
        """This one is dead: what it ran then is known."""
        self._hangs.forget(child.pid)
        if child.hang is not None:
            child.hang = child.hang.among(
                self._process_table.attempts(child.entry).running()
            )

    def _is_leased(self, child: Child, entry: ProcessEntry) -> bool:
        if entry.lost:
            return False
        renewed_at = self._process_table.renewed_at
        cut_off = entry.is_cut_off(renewed_at, lease_time(), conf.lease)
        return not cut_off

    def _see_clock_for(self, child: Child, entry: ProcessEntry) -> None:
        """Enforce the timeouts of a worker that cannot."""
        if entry.unwanted and is_silent(entry.watched / 1_000):
            logger.error(
                "Worker %s: a job that was cancelled holds the interpreter's lock, and "
                "does not hear of it; killing the process",
                child.pid,
            )
            child.hang = Hang()
        else:
            running = self._process_table.attempts(child.entry).running()
            watched, now = entry.watched / 1_000, time.monotonic()
            child.hang = self._hangs.judge(child.pid, running, watched, now)
            if child.hang is not None:
                logger.error(
                    "Worker %s: a job holds the interpreter's lock, and a timeout in "
                    "this process is over; killing it. Jobs: %s",
                    child.pid,
                    ", ".join(map(str, child.hang.timed_out or child.hang.suspects)),
                )
        if child.hang is not None:
            child.kill()
