"""Claim key by key from a lane whose keys, or whose job type, have a rate."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database, Params
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.claim import CLAIMED
from django_jobqueue.store.queue.claim_keyed import (
    LOCK_LIMIT,
    ROOM,
    JobsOfKey,
    KeyedClaim,
    KeyedLane,
    keyed_params,
    pick,
)
from django_jobqueue.store.queue.claim_limited import LOCK_TYPE, WITHOUT_WEIGHT
from django_jobqueue.store.queue.claim_rated import MOST_STARTS
from django_jobqueue.store.rows import ClaimedJob, claimed_jobs

MOST_BUCKETS: Final = 1_000  # of which the first that has room again is looked for
LONGEST_WAIT: Final = 1.0  # seconds; there may be more of them

_WITHOUT_WEIGHT: Final = WITHOUT_WEIGHT.format(job_type="%(job_type)s")
KEY: Final = buckets.of_key("%(job_type)s", "key.limit_key", own="of_key.rate")
BUCKET: Final = buckets.of_key("%(job_type)s", "bucket.limit_key", own="bucket.rate")


RATED_ROOM: Final = f"least({ROOM}, {KEY.room})"  # no more than its rate lets start


def _rated(jobs: JobsOfKey, condition: str) -> PreparedStatement:
    """The claim without a rate, of no more jobs than the rates let start."""
    condition += _WITHOUT_WEIGHT
    claim = CLAIMED.format(pick=pick(jobs(RATED_ROOM), condition, MOST_STARTS))
    return PreparedStatement(buckets.spending(claim, buckets.SPENT_OF_KEYS))


CLAIM_RATED: Final = KeyedClaim.made_by(_rated)

# Of the type, and of the key that has room again first.
NEXT_STARTS: Final = f"""
SELECT {{of_type}},
       (SELECT min(next.seconds)
          FROM (SELECT bucket.limit_key, {
    buckets.own_rate("%(job_type)s", "bucket.limit_key")
} AS rate
                  FROM jobqueue_bucket AS bucket
                 WHERE {
    buckets.OF_LIMIT.format(column="bucket.limit_key", name="%(limit_name)s")
}
                   AND bucket.full_at > statement_timestamp()
                 LIMIT {MOST_BUCKETS}) AS bucket,
               LATERAL (SELECT {{of_key}} AS seconds OFFSET 0) AS next
         WHERE next.seconds > 0)
"""
NEXT_START_OF_KEYS: Final = PreparedStatement(
    NEXT_STARTS.format(of_type=buckets.TYPE.next_start(), of_key=BUCKET.next_start())
)


def claim_keyed_rated(
    db: Database, worker: int, keyed: KeyedLane, limit: int
) -> tuple[list[ClaimedJob], float, float]:
    """Claim up to ``limit`` jobs of a lane, within the limits and the rates of each key
    and of the job type. Returns also the seconds until the next start is permitted: of
    the type, and of some key; 0 if none waits. A type with a rate that counts weights
    gives nothing."""
    claim = CLAIM_RATED.of(keyed)
    jobs, of_type, of_key = claim_keys_and_wait(
        db, worker, keyed, limit, claim, NEXT_START_OF_KEYS
    )
    return jobs, of_type or 0.0, of_key


def claim_keys_and_wait(
    db: Database,
    worker: int,
    keyed: KeyedLane,
    limit: int,
    claim: str,
    next_starts: str,
) -> tuple[list[ClaimedJob], float | None, float]:
    """Claim by this statement, under the locks of the limit and the job type; and the
    seconds that the other one finds after it: of the type, None if it has no rate, and
    of some key."""
    params = keyed_params(worker, keyed, limit, sees_rates=True)
    statements: list[tuple[str, Params]] = [
        (one, params) for one in (LOCK_LIMIT, LOCK_TYPE, claim, next_starts)
    ]
    *_, rows, ((of_type, of_key),) = db.fetch_all(statements)
    return claimed_jobs(rows), of_type, min(of_key or 0.0, LONGEST_WAIT)
