"""Reads the next deadlines once for all loops of maintenance."""

from __future__ import annotations

import logging
import math
import time
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.processes.lease_clock import ClockWatch, lease_time
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import next_deadlines
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.next_deadlines import NextDeadlines

logger = logging.getLogger("django_jobqueue.maintenance")

LONGEST: Final = 15.0  # seconds between two readings
SET_BACK: Final = 1.0  # seconds; less may be the time that a reading took
# A clock that was set forward by much may be wrong, and be set back: then what was
# planned by it is to be planned again soon.
DOUBTED_FOR: Final = 600.0  # seconds
DOUBTED_LONGEST: Final = 2.0  # seconds between two readings


class DeadlineWatch:
    """Reads them for loops that share one thread and one connection."""

    def __init__(self, connection: OwnConnection, config: WorkerConfig) -> None:
        self.read_at = -LONGEST  # time.monotonic() before they were read
        self.clock_set_at = -math.inf  # time.monotonic(); the database's, forward
        self.clock_set_back_at = -math.inf  # the same, back; or never seen before
        self._connection = connection
        self.config = config  # of the workers of this host, now
        self._next_deadlines = NextDeadlines()
        self._served: set[Loop] = set()
        self._clock = ClockWatch()

    def next_for(self, loop: Loop, *, reread: bool = False) -> NextDeadlines:
        """The next deadlines from now. Each loop gets the same ones once; then, or to
        ``reread``, they are read again. Raises StoreUnavailable."""
        if reread or loop in self._served or self.seconds_until_read <= 0:
            self._served.clear()
            self._next_deadlines = self._read()
        self._served.add(loop)
        return self._next_deadlines.after(time.monotonic() - self.read_at)

    @property
    def seconds_until_read(self) -> float:
        """Seconds until they are read again. No lease that is granted meanwhile lapses
        earlier."""
        longest = DOUBTED_LONGEST if self.clock_is_doubted else LONGEST
        return self.read_at + min(longest, conf.lease) - time.monotonic()

    @property
    def clock_is_doubted(self) -> bool:
        """True if the database's clock was set forward of late, and may be set back:
        what cannot be taken back is not to be done because it is late."""
        return time.monotonic() < self.clock_set_at + DOUBTED_FOR

    def _read(self) -> NextDeadlines:
        names = [d.name for d in registry if self.config.has_slots_for(d)]
        began, before = time.monotonic(), lease_time()
        deadlines = next_deadlines.read(self._connection, names, self.config.queues)
        self.read_at = began
        jump = self._clock.see(deadlines.clock, before, lease_time())
        if jump > conf.lease / 6:  # two thirds of one are left in every lease
            self.clock_set_at = time.monotonic()
            logger.warning("The database's clock was set forward by %.1f s", jump)
        if jump < -SET_BACK:
            self.clock_set_back_at = time.monotonic()
        return deadlines
