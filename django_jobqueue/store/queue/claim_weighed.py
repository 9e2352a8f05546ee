"""Claim from lanes of a job type with a rate that counts weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import Database, Params
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets, claim, claim_keyed, job_weights
from django_jobqueue.store.queue.claim import CLAIMED, LOCK_TYPE, OPEN, WITHOUT_KEYS
from django_jobqueue.store.queue.claim_keyed import (
    HEAD,
    LANE,
    LOCK_LIMIT,
    ROOM,
    SEVERAL,
    WITHIN_TYPE,
    KeyedLane,
    keyed_params,
)
from django_jobqueue.store.queue.claim_keyed_rated import (
    BUCKET,
    KEY,
    LONGEST_WAIT,
    NEXT_STARTS,
)
from django_jobqueue.store.queue.lanes import LaneMark, mark_params
from django_jobqueue.store.rows import ClaimedJob, claimed_jobs

SOON: Final = 0.01  # seconds

# No more jobs than as if each weighed 1.
_MOST: Final = f"least({WITHIN_TYPE}, {buckets.TYPE.room})"
_LOCK: Final = "FOR UPDATE SKIP LOCKED"


def _statement(candidates: str) -> PreparedStatement:
    """The claim of these jobs, as far as they fit into the rate of their type."""
    pick = job_weights.fitting(candidates, buckets.TYPE)
    return PreparedStatement(job_weights.spending(CLAIMED.format(pick=pick)))


def _candidates(limit: str) -> str:
    pick = claim.PICK.replace("picked.ctid", "picked.ctid, picked.weight")
    return pick.replace(
        "job.ctid", f"job.ctid, {job_weights.OF_TYPE} AS weight"
    ).format(condition=OPEN + WITHOUT_KEYS, limit=limit)


CLAIM_WEIGHED: Final = _statement(_candidates(_MOST))
# For the first job that is left.
_FIRST: Final = _candidates("1").replace(_LOCK, "")
NEXT_START: Final = PreparedStatement(
    "SELECT " + buckets.TYPE.next_start(job_weights.of_first(_FIRST))
)


def _of_keys(jobs: str, limit: str) -> str:
    """Jobs that the limits and the rates of their keys let start."""
    of_key = jobs.replace(ROOM, f"least({ROOM}, {KEY.room})").replace(
        "job.ctid\n",
        f"job.ctid, {job_weights.OF_TYPE} AS of_type, {job_weights.OF_KEY} AS weight\n",
    )
    selected = "candidate.ctid, candidate.of_type AS weight"
    fitting = job_weights.fitting(of_key, KEY, selected=selected)
    pick = claim_keyed.PICK.replace("picked.ctid", "picked.ctid, picked.weight")
    return pick.replace(WITHIN_TYPE, limit).format(jobs=f"({fitting})", condition="")


CLAIM_WEIGHED_HEADS: Final = _statement(_of_keys(HEAD, _MOST))
CLAIM_WEIGHED_SEVERAL: Final = _statement(_of_keys(SEVERAL, _MOST))
_FIRST_OF_CIRCLE: Final = _of_keys(HEAD, "1").replace(_LOCK, "")
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
    params = {
        **mark_params(lanes),
        "worker": worker,
        "limit": limit,
        "job_type": lanes[0].lane.job_type,
    }
    statements: list[tuple[str, Params]] = [
        (one, params) for one in (LOCK_TYPE, CLAIM_WEIGHED, NEXT_START)
    ]
    _, rows, ((seconds,),) = db.fetch_all(statements)
    return claimed_jobs(rows), seconds or 0.0


def claim_keyed_weighed(
    db: Database, worker: int, keyed: KeyedLane, limit: int
) -> tuple[list[ClaimedJob], float, float]:
    """As claim_keyed_rated, for rates of which one counts weights."""
    params = keyed_params(worker, keyed, limit, sees_rates=True)
    claim = CLAIM_WEIGHED_HEADS if keyed.takes_heads else CLAIM_WEIGHED_SEVERAL
    statements: list[tuple[str, Params]] = [
        (one, params) for one in (LOCK_LIMIT, LOCK_TYPE, claim, NEXT_START_OF_KEYS)
    ]
    *_, rows, ((of_type, of_key),) = db.fetch_all(statements)
    seconds: float = of_type or 0.0
    if 0 < len(rows) < limit and of_type is not None:
        # The circle goes on behind these, where perhaps a lighter job is first.
        seconds = min(seconds, SOON) or SOON
    return claimed_jobs(rows), seconds, min(of_key or 0.0, LONGEST_WAIT)
