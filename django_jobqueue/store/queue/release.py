"""Release: running → queued, with the attempt given back, for jobs that never
started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.store.columns import (
    EFFECTIVE_MAX_ATTEMPTS,
    MOVED,
    MOVED_OF_JOB,
    UNLESS_ARCHIVED,
)
from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import News
from django_jobqueue.store.totals import COUNTED

_COUNTED: Final = COUNTED.format(gone="gone", status="'cancelled'")

# A job that was cancelled since its claim is archived: nobody else may start it.
_BACK: Final = f"""
, gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING held
   WHERE job.id = held.id AND held.cancel_requested
  RETURNING {MOVED_OF_JOB}, job.attempts - 1 AS attempts, job.crashes,
            job.cancel_reason
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, finished_at, error_message,
         effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, 'cancelled', statement_timestamp(),
         coalesce(cancel_reason, 'cancelled before it started'),
         {EFFECTIVE_MAX_ATTEMPTS}
    FROM gone
  {UNLESS_ARCHIVED}
), {_COUNTED}, back AS (
  UPDATE jobqueue_queuedjob AS job
     SET status = 'queued', worker_id = NULL, started_at = NULL,
         attempts = job.attempts - 1
    FROM held
   WHERE job.id = held.id AND NOT held.cancel_requested
  RETURNING pg_notify('jobqueue', '{News.BEHIND.prefix}' || job.queue) AS sent
)
SELECT held.id, held.job_type, held.cancel_requested, (SELECT count(sent) FROM back)
  FROM held
"""
_HELD: Final = (
    "job.id, job.job_type, job.cancel_requested_at IS NOT NULL AS cancel_requested"
)
# The worker stands in the join and not in a condition, as in finish.SUCCEED.
RELEASE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT {_HELD}
    FROM (SELECT id, fence, %(worker)s::bigint AS worker_id
            FROM unnest(%(ids)s::uuid[], %(fences)s::bigint[]) AS held (id, fence)
          OFFSET 0) AS given
    JOIN jobqueue_queuedjob AS job
      ON job.id = given.id AND job.fence = given.fence
         AND job.worker_id = given.worker_id
     FOR UPDATE OF job SKIP LOCKED
){_BACK}"""

# After a claim whose answer was lost: rows that carry our name, and that we do not
# have.
RECOVER: Final = f"""
WITH held AS MATERIALIZED (
  SELECT {_HELD}
    FROM jobqueue_queuedjob AS job
   WHERE job.status = 'running' AND job.worker_id = %(worker)s
     AND job.id <> ALL (%(held)s::uuid[])
     FOR UPDATE OF job SKIP LOCKED
){_BACK}"""

# What a move to or from another database holds, which ended, and that no other one may
# ever go on with.
FROM_MOVES: Final = f"""
WITH held AS MATERIALIZED (
  SELECT {_HELD}
    FROM jobqueue_queuedjob AS job
    JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
   WHERE job.status = 'running' AND job.id = ANY (%(ids)s::uuid[])
     AND worker.state = 'moving' AND worker.lease_until < statement_timestamp()
     FOR UPDATE OF job SKIP LOCKED
){_BACK}"""

LOST: Final = """
SELECT count(*) FROM jobqueue_queuedjob AS job
 WHERE job.status = 'running' AND job.worker_id = %(worker)s
   AND job.id <> ALL (%(held)s::uuid[])
"""
CLAIMED: Final = """
SELECT id FROM jobqueue_queuedjob
 WHERE id = %(id)s AND fence = %(fence)s AND worker_id IS NOT NULL
"""


def release(
    db: Database, worker: int, ids: Sequence[UUID], fences: Sequence[int]
) -> int:
    """Give back claimed jobs that were not started; return how many that were. Left out
    are those that are no longer ours, and those that somebody has locked."""
    params = {"worker": worker, "ids": list(ids), "fences": list(fences)}
    return len(db.fetch(RELEASE, params))


def recover(db: Database, worker: int, held: Sequence[UUID]) -> int:
    """Give back whatever this worker has claimed but for ``held``, and for what others
    have locked; return how many."""
    return len(db.fetch(RECOVER, {"worker": worker, "held": list(held)}))


def take_from_moves(db: Database, ids: Sequence[UUID]) -> list[tuple[UUID, str, bool]]:
    """Let those of these jobs wait again that are held by a move which ended. Returns
    the id and the job type of each, and whether it was cancelled meanwhile, and so is
    archived."""
    return [row[:3] for row in db.fetch(FROM_MOVES, {"ids": list(ids)})]


def count_lost(db: Database, worker: int, held: Sequence[UUID]) -> int:
    """The number of jobs that this worker has claimed, besides ``held``."""
    ((count,),) = db.fetch(LOST, {"worker": worker, "held": list(held)})
    return int(count)


def is_claimed(db: Database, id: UUID, fence: int) -> bool:
    """Whether this claim still holds the job."""
    return bool(db.fetch(CLAIMED, {"id": id, "fence": fence}))
