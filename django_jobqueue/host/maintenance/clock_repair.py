"""Corrects what was written while the database's clock was ahead."""

from __future__ import annotations

import math
import time
from typing import Final

from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import buckets, insert_window

BUCKETS_EVERY: Final = 60.0  # seconds


class ClockRepair(Loop):
    """A clock that was a day ahead for seconds left moments that no rule makes: for a
    day, rates would permit nothing, and unique windows would stay open. So when the
    clock was set back, and at the start of a host, buckets of rates and windows count
    from now, with what was left of them then. A worker may have spent of a bucket
    between two looks at the clock, so buckets are looked at each minute; windows, which
    may be millions, are not. Leases are the rescuer's, and schedules the scheduler's.
    """

    name = "clock repair"

    def __init__(self, connection: OwnConnection, deadlines: DeadlineWatch) -> None:
        super().__init__()
        self._connection = connection
        self._deadlines = deadlines
        self._repaired_at = -math.inf  # the clock was set back then
        self._counted_at = -math.inf  # time.monotonic(); the buckets

    def tick(self) -> float:
        """Look whether the clock was set back."""
        self._deadlines.next_for(self)
        set_back_at, now = self._deadlines.clock_set_back_at, time.monotonic()
        is_set_back = set_back_at > self._repaired_at
        if is_set_back or now >= self._counted_at + BUCKETS_EVERY:
            buckets.set_back(self._connection)
            self._counted_at = now
        if is_set_back:
            insert_window.set_back(self._connection)
            self._repaired_at = set_back_at
        return self._deadlines.seconds_until_read
