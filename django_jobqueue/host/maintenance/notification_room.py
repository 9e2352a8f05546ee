"""Sees to it that the server has room for notifications."""

from __future__ import annotations

import logging
import time
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store import notify
from django_jobqueue.store.connection import OwnConnection

logger = logging.getLogger("django_jobqueue.notifications")

MUCH: Final = 0.5  # of the room; PostgreSQL itself warns from here on, in its own log
AGAIN_AFTER: Final = 600.0  # seconds


class NotificationRoom(Loop):
    """Asks how full the server's queue of notifications is.

    The question alone is of use: without it a queue that was full once stays so, for
    every commit that notifies, also when all have read what it holds (seen on 18).
    """

    name = "notification room"

    def __init__(self, connection: OwnConnection) -> None:
        super().__init__()
        self._connection = connection
        self._warned_at = -AGAIN_AFTER  # time.monotonic()

    def tick(self) -> float:
        """Ask, and warn in time; 8 GB are full after a long time."""
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
        return 3 * conf.poll_interval
