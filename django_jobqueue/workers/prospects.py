"""What is ahead, looked at once for all the chores of a keeper."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from django_jobqueue.store import prospect
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.prospect import Prospect
from django_jobqueue.workers.loop import Loop

FRESH: Final = 0.1  # seconds for which a look of another chore will do
LONGEST: Final = 15.0  # between looks


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
        self._looked_at = 0.0  # time.monotonic()
        self._told: set[Loop] = set()

    def look(self, chore: Loop, *, anew: bool = False) -> Prospect:
        """What is ahead; a look that was taken for another chore a moment ago will do,
        unless ``anew``. Raises StoreUnavailable."""
        now = time.monotonic()
        if anew or chore in self._told or now - self._looked_at >= FRESH:
            self._told.clear()
            self._prospect = prospect.look(
                self._connection, self._job_types, self._queues
            )
            self._looked_at = now
        self._told.add(chore)
        return self._prospect
