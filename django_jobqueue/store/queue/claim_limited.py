"""Claim within the limit of a job type: queued → running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.claim import CLAIMED, OPEN, pick
from django_jobqueue.store.queue.lanes import LaneMark, mark_params
from django_jobqueue.store.rows import ClaimedJob, claimed_jobs

# What a claim does not keep itself, as in ``claim()``.
WITHOUT_KEYS: Final = """
     AND (SELECT type.limit_name IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = lane.job_type)
"""
WITHOUT_WEIGHT: Final = """
     AND (SELECT type.weight_rule IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
"""
_WITHOUT_RATE = f"""
     AND (SELECT type.limit_name IS NULL
                 AND {buckets.IN_FORCE.format(row="type")} IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = lane.job_type)
"""

# An order pins the index of running jobs by key, and the range keeps the planner from
# dropping the order: with the statistics of a table in which nothing ran, it read all
# running jobs for each key (33 ms instead of 3 for a claim of 100).
RUNNING_OF_KEY: Final = """
(SELECT count(*)
   FROM (SELECT FROM jobqueue_queuedjob AS other
          WHERE other.status = 'running' AND other.limit_key >= {key}
            AND other.limit_key <= {key}
          ORDER BY other.limit_key) AS of_key)
"""

# An exact limit needs two statements in one transaction: the second one's snapshot must
# be younger than the lock that the first one waited for (one statement: 7 at a limit of
# 5). FOR NO KEY UPDATE, so that enqueues, which lock the row by its key, do not wait.
LOCK_TYPE: Final = PreparedStatement("""
SELECT name FROM jobqueue_jobtype WHERE name = %(job_type)s FOR NO KEY UPDATE
""")
ROOM: Final = """
       (SELECT greatest(0, least({limit},
                 CASE type.concurrency_override WHEN -1 THEN NULL
                      ELSE coalesce(type.concurrency_override, type.concurrency) END
                 - (SELECT count(*) FROM jobqueue_queuedjob AS other
                     WHERE other.status = 'running' AND other.job_type = type.name)))
          FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
"""
WITHIN_LIMIT: Final = ROOM.format(limit="%(limit)s", job_type="%(job_type)s")
CLAIM_LIMITED: Final = PreparedStatement(
    CLAIMED.format(pick=pick(OPEN + _WITHOUT_RATE, WITHIN_LIMIT))
)
# For a caller whose time does not pass.
CLAIM_IGNORING_RATES: Final = PreparedStatement(
    CLAIMED.format(pick=pick(OPEN + WITHOUT_KEYS, WITHIN_LIMIT))
)


def claim_limited(
    db: Database,
    worker: int,
    lanes: Sequence[LaneMark],
    limit: int,
    *,
    keeps_rates: bool = True,
) -> list[ClaimedJob]:
    """Claim from lanes that are all of one job type, within its concurrency.

    A type with a rate gives nothing, unless rates are ignored.
    """
    statement = CLAIM_LIMITED if keeps_rates else CLAIM_IGNORING_RATES
    params = {
        **mark_params(lanes),
        "worker": worker,
        "limit": limit,
        "job_type": lanes[0].lane.job_type,
    }
    rows = db.fetch_all([(LOCK_TYPE, params), (statement, params)])[1]
    return claimed_jobs(rows)
