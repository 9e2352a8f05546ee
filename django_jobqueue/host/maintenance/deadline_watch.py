"""Reads the next deadlines once for all loops of maintenance."""

from __future__ import annotations

import logging
import math
import time
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.processes.lease_clock import ClockWatch, lease_time
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import next_deadlines
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.next_deadlines import NextDeadlines

logger = logging.getLogger("django_jobqueue.rescuer")

LONGEST: Final = 15.0  # seconds between looks


class DeadlineWatch:
    """Reads them for loops that share one thread and one connection."""

    def __init__(self, connection: OwnConnection, config: WorkerConfig) -> None:
        self.looked_at = -LONGEST  # time.monotonic() before the last look
        self.clock_set_at = -math.inf  # time.monotonic(); the database's, forward
        self._connection = connection
        self._config = config
        self._next_deadlines = NextDeadlines()
        self._served: set[Loop] = set()
        self._clock = ClockWatch()

    def look(self, loop: Loop, *, anew: bool = False) -> NextDeadlines:
        """The next deadlines from now. Each loop gets a look once; then, or if it wants
        them ``anew``, they are read again. Raises StoreUnavailable."""
        if anew or loop in self._served or self.rest <= 0:
            self._served.clear()
            self._next_deadlines = self._look()
        self._served.add(loop)
        return self._next_deadlines.after(time.monotonic() - self.looked_at)

    @property
    def rest(self) -> float:
        """Seconds until the next look. No lease that is granted meanwhile lapses
        earlier."""
        return self.looked_at + min(LONGEST, conf.lease) - time.monotonic()

    def _look(self) -> NextDeadlines:
        names = [d.name for d in registry if self._config.has_slots_for(d)]
        began, before = time.monotonic(), lease_time()
        found = next_deadlines.read(
            self._connection, names, self._config.queues, schedules.names
        )
        self.looked_at = began
        ahead = self._clock.see(found.clock, before, lease_time())
        if ahead > conf.lease / 6:  # two thirds of one are left in every lease
            self.clock_set_at = time.monotonic()
            logger.warning("The database's clock was set forward by %.1f s", ahead)
        return found
