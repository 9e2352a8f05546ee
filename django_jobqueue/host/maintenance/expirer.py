"""Archives expired jobs, also while no worker claims."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.signal_sender import announce_expired
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import in_a_line, is_contended
from django_jobqueue.store.partial_batches import apply_in_parts
from django_jobqueue.store.queue import expire

logger = logging.getLogger("django_jobqueue.maintenance")

AGAIN_AFTER: Final = 600.0  # seconds until the next try for a job that was refused
LOCKED_AFTER: Final = 5.0  # the same for a job that others have locked


class Expirer(Loop):
    """Sleeps until the next job expires.

    Some jobs cannot be archived: the database refuses it, as a trigger may, or others
    hold a lock on them. They do not hold up the other jobs.
    """

    name = "expirer"

    def __init__(self, connection: OwnConnection, deadlines: DeadlineWatch) -> None:
        super().__init__()
        self._connection = connection
        self._deadlines = deadlines
        self._refused: dict[UUID, float] = {}  # when to try again; time.monotonic()

    def tick(self) -> float:
        """Archive a batch of expired jobs."""
        seconds = self._deadlines.next_for(self).expiry
        if self._deadlines.clock_is_doubted:
            seconds = None
        if seconds is None or seconds > 0:
            until_read = self._deadlines.seconds_until_read
            return until_read if seconds is None else min(seconds, until_read)
        if self._refused:
            return self._expire_others()
        try:
            expired = self._expire(None)
        except (psycopg.Error, StoreUnavailable) as error:
            if isinstance(error, StoreUnavailable) and not is_contended(error):
                raise
            return self._expire_others()
        return 0.0 if expired else 1.0  # else somebody else has locked them

    def _expire(self, only: Sequence[UUID] | None) -> int:
        expired = expire.expire(self._connection, only)
        announce_expired(expired)
        return len(expired)

    def _expire_others(self) -> float:
        """The same without the refused jobs; returns the seconds to rest."""
        now = time.monotonic()
        self._refused = {id: at for id, at in self._refused.items() if at > now}
        ids = expire.due(self._connection, self._refused)
        for left in apply_in_parts(self._connection, ids, self._expire, brief=True):
            delay = LOCKED_AFTER if left.is_locked else AGAIN_AFTER
            for id in left.items:
                logger.error(
                    "Job %s expired and cannot be archived: %s",
                    id,
                    in_a_line(left.error),
                )
                self._refused[id] = time.monotonic() + delay
        # A full batch may have others behind it, or be locked by somebody else.
        if len(ids) == expire.BATCH:
            return 1.0
        again = min(self._refused.values(), default=now) - time.monotonic()
        return min(max(1.0, again), self._deadlines.seconds_until_read)
