"""Claim: queued → running, for jobs that this worker can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.lanes import FROM_MARK, LANES, LaneMark, mark_params
from django_jobqueue.store.rows import ClaimedJob, claimed_jobs

# A type without a limit that is not paused, in a queue that is not paused. Scalar
# subqueries, not joins, so that the order of the lanes is kept.
IS_OPEN: Final = """
         coalesce((SELECT NOT (queue.paused AND (queue.resume_at IS NULL
                                   OR queue.resume_at > statement_timestamp()))
                     FROM jobqueue_queue AS queue WHERE queue.name = {queue}), true)
     AND (SELECT NOT (type.paused AND (type.resume_at IS NULL
                          OR type.resume_at > statement_timestamp()))
            FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
"""
OPEN: Final = IS_OPEN.format(queue="lane.queue", job_type="lane.job_type")
# A worker may have read the policies before a limit or a rate was declared, so each
# claim looks itself for those that it does not keep.
_UNLIMITED = f"""
     AND (SELECT CASE type.concurrency_override WHEN -1 THEN true
                 ELSE coalesce(type.concurrency_override, type.concurrency) IS NULL END
                 AND type.limit_name IS NULL
                 AND {buckets.IN_FORCE.format(row="type")} IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = lane.job_type)
"""

# Each lane is one index range, read in order and only as far as needed: the lanes are
# the outer side of a nested loop, so the first ones are exhausted before the next is
# touched, and LIMIT ends it. `ctid = ANY(ARRAY(...))` is evaluated once; `id IN
# (subselect)` may lock more rows than the LIMIT (5,000 instead of 10, seen on 15, 16,
# 18).
_PICK = f"""
       SELECT picked.ctid{{picked}}
         FROM {LANES},
              LATERAL (
                SELECT job.ctid{{columns}}
                  FROM jobqueue_queuedjob AS job
                 WHERE job.status = 'queued' AND NOT job.quarantined
                   AND job.queue = lane.queue AND job.priority = lane.priority
                   AND job.job_type = lane.job_type
                   AND job.run_after <= statement_timestamp()
                   AND {FROM_MARK}
                   AND (job.expires_at IS NULL
                        OR job.expires_at > statement_timestamp())
                 ORDER BY job.run_after, job.id
                 LIMIT %(limit)s
                   {{lock}}) AS picked
        WHERE {{condition}}
        LIMIT {{limit}}
"""
LOCK: Final = "FOR UPDATE SKIP LOCKED"


def pick(condition: str, limit: str, *, weight: str = "", lock: str = LOCK) -> str:
    """The jobs of lanes that a claim takes; with what each counts, if that is given."""
    return _PICK.format(
        condition=condition,
        limit=limit,
        picked=weight and ", picked.weight",
        columns=weight and f", {weight} AS weight",
        lock=lock,
    )


# Numbers that plain SQL set to the greatest that there is stay there; a fence begins
# again at the least, so that it differs. Else one such row would fail every claim.
CLAIMED: Final = """
UPDATE jobqueue_queuedjob AS job
   SET status = 'running', worker_id = %(worker)s, started_at = statement_timestamp(),
       fence = CASE WHEN job.fence < 9223372036854775807 THEN job.fence + 1
                    ELSE -9223372036854775808 END,
       attempts = least(job.attempts, 2147483646) + 1,
       unique_key = CASE WHEN NOT job.unique_until_started THEN job.unique_key END
 WHERE job.ctid = ANY (ARRAY ({pick}))
RETURNING job.id, job.job_type, job.queue, job.priority, job.data::text, job.attempts,
          job.max_attempts, job.crashes, job.fence, date_part('epoch', job.run_after),
          date_part('epoch', job.created_at),
          date_part('epoch', statement_timestamp() - job.run_after),
          date_part('epoch', job.expires_at - statement_timestamp()),
          job.metadata::text, date_part('epoch', job.timeout), job.backoff::text,
          job.limit_key
"""

CLAIM: Final = PreparedStatement(
    CLAIMED.format(pick=pick(OPEN + _UNLIMITED, "%(limit)s"))
)


def claim(
    db: Database, worker: int, lanes: Sequence[LaneMark], limit: int
) -> list[ClaimedJob]:
    """Claim up to ``limit`` jobs from these lanes, exhausting each before the next.

    Lanes of job types that are paused, or have a limit or a rate, give nothing.
    """
    rows = db.fetch(CLAIM, {**mark_params(lanes), "worker": worker, "limit": limit})
    return claimed_jobs(rows)
