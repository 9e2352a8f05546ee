"""What is ahead, looked at once for all the chores of a keeper."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.store import prospect
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.prospect import Prospect
from django_jobqueue.workers.loop import Loop

LONGEST: Final = 15.0  # seconds between looks


class Prospects:
    """Looks for chores that share one thread and one connection."""

    def __init__(
        self,
        connection: OwnConnection,
        *,
        job_types: Sequence[str],
        queues: Sequence[str] | None,
    ) -> None:
        self._connection = connection
        self._job_types = job_types
        self._queues = queues
        self._prospect = Prospect()
        self._looked_at = -LONGEST  # time.monotonic()
        self._told: set[Loop] = set()

    def look(self, chore: Loop, *, anew: bool = False) -> Prospect:
        """What is ahead from now on. Each look does for every chore once, unless it is
        to be ``anew``. Raises StoreUnavailable."""
        if anew or chore in self._told or self.rest <= 0:
            self._told.clear()
            self._prospect = prospect.look(
                self._connection, self._job_types, self._queues
            )
            self._looked_at = time.monotonic()
        self._told.add(chore)
        age = time.monotonic() - self._looked_at
        return Prospect(*(None if s is None else s - age for s in self._prospect))

    @property
    def rest(self) -> float:
        """Seconds until the next look: no lease that is granted meanwhile lapses
        before."""
        return self._looked_at + min(LONGEST, conf.lease) - time.monotonic()
