"""The exporter process as the supervisor sees it: a child that it replaces when it
dies, and that ends last."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from typing import Final

from django_jobqueue.domain.log_events import Event
from django_jobqueue.host.child import Child, how_it_ended
from django_jobqueue.host.exporter.exporter_process import ExporterProcess
from django_jobqueue.host.exporter.scrape_server import url_of
from django_jobqueue.host.restarts import Restarts
from django_jobqueue.processes.host_counters import HostCounters
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.shutdown import EXPORTER_ENDS, KILLED_ENDS

logger = logging.getLogger("django_jobqueue.supervisor")

ENTRY: Final = -2  # no number of an entry in the process table
# Carries the port to the program that takes the place of this one.
LISTENED: Final = "JOBQUEUE_LISTENED_AT"

Fork = Callable[[int, Callable[[int], int], Restarts], Child | None]


class ExporterChild:
    """Starts it, with the socket that was bound before the first fork."""

    def __init__(
        self,
        process_table: ProcessTable,
        counters: HostCounters,
        *,
        listening: socket.socket,
        drains: bool,
        fork: Fork,
    ) -> None:
        self.child: Child | None = None
        self.restarts = Restarts()
        self.listening = listening.fileno()
        self.url = f"{url_of(listening)}/metrics"
        # The variables with which the program is started again.
        self.environment = {LISTENED: str(listening.getsockname()[1])}
        self._process_table = process_table
        self._counters = counters
        self._drains = drains
        self._fork = fork

    def ensure(self) -> None:
        """Start it, or its successor."""
        if self.child is None and self.restarts.is_due(time.monotonic()):
            self.child = self._fork(ENTRY, self._live, self.restarts)

    def ended(self, code: int) -> None:
        """It has ended without an order to."""
        if self.child is None:
            return
        self.child.reap()
        now = time.monotonic()
        self.restarts.died(lived=now - self.child.born, now=now)
        self.child = None
        self._counters.count_death("killed" if code < 0 else "exited")
        how, often = how_it_ended(code, orderly=False), self.restarts.how_often
        if self.restarts.note_cause(how, now):
            logger.error(
                "The exporter process ended (%s%s); starting another",
                how,
                often,
                extra={"event": Event.EXPORTER_DIED},
            )

    def end_if_paused(self, seconds: float) -> None:
        """Kill it if it was stopped (SIGSTOP) longer ago than this; a successor will
        start."""
        if self.child and self.child.is_paused_for(seconds, time.monotonic()):
            logger.error("The exporter process is stopped (SIGSTOP); killing it")
            self.child.kill()

    def end(self) -> None:
        """Let it send its last answers, and end."""
        child, self.child = self.child, None
        if child is None:
            return
        child.order(b"stop")
        if child.wait_for_exit(EXPORTER_ENDS) is None:
            child.kill()
            child.wait_for_exit(KILLED_ENDS)
        child.reap()

    def _live(self, order_pipe: int) -> int:
        return ExporterProcess(
            listening=self.listening,
            order_pipe=order_pipe,
            process_table=self._process_table,
            counters=self._counters,
            drains=self._drains,
        ).live()
