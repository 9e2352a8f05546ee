"""The claim of a lane whose job type has a rate."""

from __future__ import annotations

from collections.abc import Sequence

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_rated import claim_rated
from django_jobqueue.store.queue.claim_weighed import claim_weighed
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.store.rows import ClaimedJob


class RatedClaims:
    """The claims of one turn of a lane."""

    def __init__(self, *, by_weight: bool) -> None:
        self._claim = claim_weighed if by_weight else claim_rated
        self.seconds = 0.0  # until the next start is permitted, after the last claim

    def claim(
        self, db: OwnConnection, worker: int, lanes: Sequence[LaneMark], wanted: int
    ) -> list[ClaimedJob]:
        """Claim some jobs, as many as may start now."""
        jobs, self.seconds = self._claim(db, worker, lanes, wanted)
        return jobs
