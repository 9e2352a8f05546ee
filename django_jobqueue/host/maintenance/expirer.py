"""Archives jobs that expired, also when nobody claims."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import psycopg

from django_jobqueue.execution.signal_sender import tell_expired
from django_jobqueue.host.maintenance.deadlines import Prospects
from django_jobqueue.host.maintenance.halving import each_it_can, one_line
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store import expire
from django_jobqueue.store.connection import OwnConnection

logger = logging.getLogger("django_jobqueue.expirer")

AGAIN_AFTER: Final = 600.0  # seconds until jobs are tried again that were refused


class Expirer(Loop):
    """Sleeps until the next job expires.

    Jobs that the database refuses to archive, as a trigger may, keep no others.
    """

    name = "expirer"

    def __init__(self, connection: OwnConnection, prospects: Prospects) -> None:
        super().__init__()
        self._connection = connection
        self._prospects = prospects
        self._refused: dict[UUID, psycopg.Error] = {}
        self._again_at = 0.0  # time.monotonic()

    def tick(self) -> float:
        """Archive a batch of those that have expired."""
        seconds = self._prospects.look(self).expiry
        if seconds is None or seconds > 0:
            rest = self._prospects.rest
            return rest if seconds is None else min(seconds, rest)
        if self._refused:
            return self._expire_others()
        try:
            found = self._expire(None)
        except psycopg.Error:
            self._again_at = time.monotonic() + AGAIN_AFTER
            return self._expire_others()
        return 0.0 if found else 1.0  # else somebody else has locked them

    def _expire(self, only: Sequence[UUID] | None) -> int:
        found = expire.expire(self._connection, only)
        tell_expired(found)
        return len(found)

    def _expire_others(self) -> float:
        """The same without those that were refused; returns the rest."""
        ids = expire.due(self._connection, self._refused)
        refused = each_it_can(ids, self._expire)
        for id, error in refused.items():
            logger.error(
                "Job %s expired and cannot be archived: %s", id, one_line(error)
            )
        self._refused |= refused
        if time.monotonic() >= self._again_at:
            self._refused.clear()
        # A full batch may have others behind it, or be locked by somebody else.
        return 1.0 if len(ids) == expire.BATCH else self._prospects.rest
