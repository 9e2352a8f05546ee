"""Archives jobs that expired, also when nobody claims."""

from __future__ import annotations

from django_jobqueue.store import expire
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.announcer import tell_expired
from django_jobqueue.workers.loop import Loop
from django_jobqueue.workers.prospects import Prospects


class Expirer(Loop):
    """Sleeps until the next job expires."""

    name = "expirer"

    def __init__(self, connection: OwnConnection, prospects: Prospects) -> None:
        super().__init__()
        self._connection = connection
        self._prospects = prospects

    def tick(self) -> float:
        """Archive a batch of those that have expired."""
        seconds = self._prospects.look(self).expiry
        if seconds is None or seconds > 0:
            rest = self._prospects.rest
            return rest if seconds is None else min(seconds, rest)
        found = expire.expire(self._connection)
        tell_expired(found)
        return 0.0 if found else 1.0  # else somebody else has locked them
