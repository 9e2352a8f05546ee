"""Claim from lanes of a job type that has a rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import Database, Params
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.claim import CLAIMED, OPEN, pick
from django_jobqueue.store.queue.claim_keyed import WITHIN_TYPE
from django_jobqueue.store.queue.claim_limited import (
    LOCK_TYPE,
    WITHOUT_KEYS,
    WITHOUT_WEIGHT,
)
from django_jobqueue.store.queue.lanes import LaneMark, mark_params
from django_jobqueue.store.rows import ClaimedJob, claimed_jobs

# No more than the concurrency of the type and its rate let start.
MOST_STARTS: Final = f"least({WITHIN_TYPE}, {buckets.TYPE.room})"

# After the lock of the job type, for the same reason as CLAIM_LIMITED: what claims
# before this one have spent must be in its snapshot, and its clock be younger.
_CONDITION: Final = (
    OPEN + WITHOUT_KEYS + WITHOUT_WEIGHT.format(job_type="lane.job_type")
)
CLAIM_RATED: Final = PreparedStatement(
    buckets.spending(
        CLAIMED.format(pick=pick(_CONDITION, MOST_STARTS)), buckets.SPENT_OF_TYPE
    )
)


def claim_rated(
    db: Database, worker: int, lanes: Sequence[LaneMark], limit: int
) -> tuple[list[ClaimedJob], float]:
    """Claim from lanes that are all of one job type, within its rate and its
    concurrency. Returns the seconds until the next start is permitted as well: 0 if
    another one was. A type whose rate counts weights gives nothing."""
    return claim_and_wait(db, worker, lanes, limit, CLAIM_RATED, buckets.NEXT_START)


def claim_and_wait(
    db: Database,
    worker: int,
    lanes: Sequence[LaneMark],
    limit: int,
    claim: str,
    next_start: str,
) -> tuple[list[ClaimedJob], float]:
    """Claim by this statement, under the lock of the job type; and the seconds that the
    other one finds after it."""
    params = {
        **mark_params(lanes),
        "worker": worker,
        "limit": limit,
        "job_type": lanes[0].lane.job_type,
    }
    statements: list[tuple[str, Params]] = [
        (one, params) for one in (LOCK_TYPE, claim, next_start)
    ]
    _, rows, ((seconds,),) = db.fetch_all(statements)
    return claimed_jobs(rows), seconds or 0.0
