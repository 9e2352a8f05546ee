"""Renews the leases of this host's workers, in one statement."""

from __future__ import annotations

import logging
import time

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers import identity
from django_jobqueue.workers.loop import Loop
from django_jobqueue.workers.roster import DESIRES, Roster

logger = logging.getLogger(__name__)


class Renewer(Loop):
    """Somebody other than the handlers keeps the claims: a handler that holds the
    interpreter lock does not look dead, and one that is dead is not kept alive."""

    name = "renewer"

    def __init__(self, roster: Roster, connection: OwnConnection) -> None:
        super().__init__()
        self._roster = roster
        self._connection = connection

    def tick(self) -> float:
        """Renew all that the supervisor says are running."""
        seats = {s.worker: s for s in self._roster if s.worker and s.renewable}
        began = time.monotonic()
        beats = [
            workers.Beat(s.worker, s.running, identity.rss(s.pid), bool(s.draining))
            for s in seats.values()
        ]
        try:
            renewed = workers.renew(self._connection, beats, conf.lease)
        except StoreUnavailable as error:
            error.retry_in = min(error.retry_in, conf.lease / 10)
            raise
        self._roster.renewed_at = began
        for worker, seat in seats.items():
            if worker not in renewed:
                logger.error("Worker %s was given up by others", seat.pid)
                self._roster.write(seat.number, lost=1)
                continue
            asked = renewed[worker]
            self._roster.write(seat.number, inquiry=asked.inquiry)
            if asked.desired in DESIRES:
                desire = DESIRES.index(asked.desired)
                self._roster.write(seat.number, desired=desire)
        return conf.lease / 3

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()
