"""Which of the jobs that run here an operator has cancelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel

EVERY: Final = 5.0  # seconds


class Cancelled:
    """The net under the notifications of cancelled jobs: asks now and then."""

    def __init__(
        self, running: Callable[[], Sequence[Attempt]], stop: Callable[[str], None]
    ) -> None:
        self._running = running
        self._stop = stop
        self._next = 0.0  # time.monotonic()

    def look(self, connection: OwnConnection, now: float) -> None:
        """Stop what was cancelled, unless the last look was a moment ago."""
        if now < self._next:
            return
        self._next = now + min(EVERY, conf.poll_interval)
        ids = [attempt.job.id for attempt in self._running()]
        if ids:
            for id in cancel.requested(connection, ids):
                self._stop(str(id))
