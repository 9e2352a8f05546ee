"""Warns when the server's queue of notifications fills up."""

from __future__ import annotations

import logging
import time
from typing import Final

from django_jobqueue.processes.loop import Loop
from django_jobqueue.store import notify
from django_jobqueue.store.connection import OwnConnection

logger = logging.getLogger("django_jobqueue.maintenance")

MUCH: Final = 0.5  # of the room; PostgreSQL itself warns from here on, in its own log
ASK_EVERY: Final = 60.0  # seconds
AGAIN_AFTER: Final = 600.0  # seconds between two warnings


class NotificationQueueWatch(Loop):
    """Asks how full the queue is.

    The question itself helps: without it, a queue that was full once stays full for
    every commit that notifies, even after all have read its content (seen on 18).
    """

    name = "notification queue"

    def __init__(self, connection: OwnConnection) -> None:
        super().__init__()
        self._connection = connection
        self._warned_at = -AGAIN_AFTER  # time.monotonic()

    def tick(self) -> float:
        """Ask, and warn in time. The queue holds 8 GB, so it takes long to fill."""
        used = notify.usage(self._connection)
        now = time.monotonic()
        if used >= MUCH and now - self._warned_at >= AGAIN_AFTER:
            self._warned_at = now
            logger.warning(
                "The server's queue of notifications is %.0f %% full, and when it is "
                "full, commits that notify fail. A session that listens has a "
                "transaction open; look for the oldest one in pg_stat_activity.",
                100 * used,
            )
        return ASK_EVERY
