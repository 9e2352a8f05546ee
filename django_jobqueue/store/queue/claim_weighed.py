"""Claim from lanes of a job type with a rate that counts weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets, claim, claim_keyed, job_weights
from django_jobqueue.store.queue.claim import CLAIMED, LOCK, OPEN
from django_jobqueue.store.queue.claim_keyed import (
    LANE,
    JobsOfKey,
    KeyedClaim,
    KeyedLane,
)
from django_jobqueue.store.queue.claim_keyed_rated import (
    BUCKET,
    KEY,
    NEXT_STARTS,
    RATED_ROOM,
    claim_keys_and_wait,
)
from django_jobqueue.store.queue.claim_limited import WITHOUT_KEYS
from django_jobqueue.store.queue.claim_rated import MOST_STARTS, claim_and_wait
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.store.rows import ClaimedJob

SOON: Final = 0.01  # seconds


def _statement(candidates: str) -> PreparedStatement:
    """The claim of these jobs, as far as they fit into the rate of their type."""
    pick = job_weights.fitting(candidates, buckets.TYPE)
    return PreparedStatement(job_weights.spending(CLAIMED.format(pick=pick)))


def _candidates(limit: str, lock: str = LOCK) -> str:
    condition, weight = OPEN + WITHOUT_KEYS, job_weights.OF_TYPE
    return claim.pick(condition, limit, weight=weight, lock=lock)


CLAIM_WEIGHED: Final = _statement(_candidates(MOST_STARTS))
# For the first job that is left.
_FIRST: Final = _candidates("1", lock="")
NEXT_START: Final = PreparedStatement(
    "SELECT " + buckets.TYPE.next_start(job_weights.of_first(_FIRST))
)


_WEIGHTS: Final = f", {job_weights.OF_TYPE} AS of_type, {job_weights.OF_KEY} AS weight"


def _of_keys(jobs: JobsOfKey, limit: str, condition: str = "", lock: str = LOCK) -> str:
    """Jobs that the limits and the rates of their keys let start."""
    of_key = jobs(RATED_ROOM, _WEIGHTS, lock)
    selected = "candidate.ctid, candidate.of_type AS weight"
    fitting = job_weights.fitting(of_key, KEY, selected=selected)
    return claim_keyed.pick(f"({fitting})", condition, limit, ", picked.weight")


CLAIM_KEYED_WEIGHED: Final = KeyedClaim.made_by(
    lambda jobs, condition: _statement(_of_keys(jobs, MOST_STARTS, condition))
)
_FIRST_OF_CIRCLE: Final = _of_keys(claim_keyed.head, "1", lock="")
_FIRST_OF_KEY: Final = f"""
SELECT {job_weights.OF_KEY} AS weight
  FROM jobqueue_queuedjob AS job
 WHERE {LANE} AND job.run_after <= statement_timestamp()
   AND job.limit_key >= bucket.limit_key AND job.limit_key <= bucket.limit_key
 ORDER BY job.limit_key, job.run_after, job.id
 LIMIT 1
"""
NEXT_START_OF_KEYS: Final = PreparedStatement(
    NEXT_STARTS.format(
        of_type=buckets.TYPE.next_start(job_weights.of_first(_FIRST_OF_CIRCLE)),
        of_key=BUCKET.next_start(job_weights.of_first(_FIRST_OF_KEY)),
    )
)


def claim_weighed(
    db: Database, worker: int, lanes: Sequence[LaneMark], limit: int
) -> tuple[list[ClaimedJob], float]:
    """As claim_rated, for a rate that counts weights; the seconds are those until the
    first job that is left may start."""
    return claim_and_wait(db, worker, lanes, limit, CLAIM_WEIGHED, NEXT_START)


def claim_keyed_weighed(
    db: Database, worker: int, keyed: KeyedLane, limit: int
) -> tuple[list[ClaimedJob], float, float]:
    """As claim_keyed_rated, for rates of which one counts weights."""
    claim = CLAIM_KEYED_WEIGHED.of(keyed)
    jobs, of_type, of_key = claim_keys_and_wait(
        db, worker, keyed, limit, claim, NEXT_START_OF_KEYS
    )
    if 0 < len(jobs) < limit and of_type is not None:
        # The circle goes on after these, where perhaps a lighter job is first.
        of_type = min(of_type, SOON) or SOON
    return jobs, of_type or 0.0, of_key
