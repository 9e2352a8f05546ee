"""Polls for cancelled jobs, should their notification be lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel

POLL_EVERY: Final = 5.0  # seconds, or POLL_INTERVAL if that is less


class CancellationPoll:
    """Asks the database now and then which running jobs an operator has cancelled."""

    def __init__(
        self, running: Callable[[], Sequence[Attempt]], cancel: Callable[[str], None]
    ) -> None:
        self._running = running
        self._cancel = cancel
        self.next_at = 0.0  # time.monotonic()

    def poll(self, connection: OwnConnection, now: float) -> float:
        """Stop cancelled jobs, unless the last poll was a moment ago; returns the
        seconds until the next one, without end if nothing runs. Raises
        StoreUnavailable."""
        if now >= self.next_at:
            self.next_at = now + min(POLL_EVERY, conf.poll_interval)
            ids = [attempt.job.id for attempt in self._running()]
            if not ids:
                return math.inf
            for id in cancel.requested(connection, ids):
                self._cancel(str(id))
        return self.next_at - now
