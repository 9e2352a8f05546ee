"""Logs an outage of the database once a process, and its end once."""

from __future__ import annotations

import logging
import time
from typing import Final

from django_jobqueue.domain.log_events import Event

logger = logging.getLogger("django_jobqueue.database")

REPEAT_EVERY: Final = 60.0  # seconds between two records of one outage


class OutageLog:
    """Logs an outage once for all connections of this process: the one that goes on, or
    the last one.

    A connection that was idle learns of an outage when it is over for the others; what
    was connected before the outage began has nothing new to say. Threads that race here
    log once too often at worst.
    """

    def __init__(self, event: Event) -> None:
        self._event = event
        self._goes_on = False
        self._began = 0.0  # time.monotonic()
        self._logged_at = 0.0

    @property
    def goes_on(self) -> bool:
        """True if some connection could not reach the database, and none could
        since."""
        return self._goes_on

    def lost(self, purpose: str, problem: str, connected_at: float) -> None:
        """A connection that was made at ``connected_at`` (time.monotonic(), 0 is never)
        cannot reach the database."""
        now = time.monotonic()
        is_recent = now - self._logged_at < REPEAT_EVERY
        if is_recent and (self._goes_on or 0 < connected_at < self._began):
            return
        if not self._goes_on:
            self._goes_on, self._began = True, now
        self._logged_at = now
        logger.warning(
            "%s: database error, trying again: %s",
            purpose,
            problem,
            extra={"event": self._event, "connection": purpose},
        )

    def back(self, purpose: str, tries: int) -> None:
        """A connection that could not reach the database can."""
        if not self._goes_on:
            return
        self._goes_on, now = False, time.monotonic()
        self._logged_at = now
        logger.info(
            "%s: the database can be used again after %.1f s (%d tries)",
            purpose,
            now - self._began,
            tries,
            extra={"event": Event.DATABASE_BACK, "connection": purpose},
        )


class CallErrors:
    """Counts calls that failed. Threads that race here may count one too few."""

    def __init__(self) -> None:
        self.count = 0


outages: Final = OutageLog(Event.DATABASE_LOST)
call_errors: Final = CallErrors()  # of this process, and of its parent before the fork
