"""Cancel: a queued job is archived at once; a running one is asked to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
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

# In the order of their ids, as outcomes are written: two that lock the same rows do not
# deadlock. The first reason for cancelling a running job stands.
CANCEL: Final = f"""
WITH held AS MATERIALIZED (
  SELECT id, status FROM jobqueue_queuedjob
   WHERE id = ANY (%(ids)s::uuid[])
   ORDER BY id
     FOR UPDATE
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING held
   WHERE job.id = held.id AND held.status = 'queued'
  RETURNING {MOVED_OF_JOB}, job.attempts, job.crashes
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, finished_at, error_message,
         effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, 'cancelled', statement_timestamp(), %(reason)s,
         {EFFECTIVE_MAX_ATTEMPTS}
    FROM gone
  {UNLESS_ARCHIVED}
), {_COUNTED}, asked AS (
  UPDATE jobqueue_queuedjob AS job
     SET cancel_requested_at = coalesce(job.cancel_requested_at, statement_timestamp()),
         cancel_reason = coalesce(job.cancel_reason, %(reason)s)
    FROM held
   WHERE job.id = held.id AND held.status = 'running'
  RETURNING job.id
)
SELECT id, true, NULL::text FROM gone
UNION ALL
SELECT id, false, pg_notify('jobqueue', '{News.CANCEL.prefix}' || id)::text FROM asked
"""

# Which of a worker's running jobs are to be cancelled: the net under the notification.
REQUESTED: Final = """
SELECT id FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[]) AND cancel_requested_at IS NOT NULL
"""

REQUESTED_LONG_AGO: Final = """
SELECT id FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[])
   AND cancel_requested_at < clock_timestamp() - %(seconds)s * interval '1 second'
"""


class Cancelled(NamedTuple):
    """The cancelled jobs, and the running ones that were asked to stop."""

    archived: list[UUID]
    asked: list[UUID]


def cancel(db: Database, ids: Sequence[UUID], *, reason: str) -> Cancelled:
    """Cancel these jobs; ids that are not queued or running are left out."""
    rows = db.fetch(CANCEL, {"ids": list(ids), "reason": reason})
    return Cancelled(
        archived=[id for id, gone, _ in rows if gone],
        asked=[id for id, gone, _ in rows if not gone],
    )


def requested(db: Database, ids: Sequence[UUID]) -> list[UUID]:
    """The running jobs among these that somebody asked to cancel."""
    return [row[0] for row in db.fetch(REQUESTED, {"ids": list(ids)})]


def requested_long_ago(db: Database, ids: Sequence[UUID], seconds: float) -> list[UUID]:
    """The jobs among these that somebody asked to cancel more than this many seconds
    ago."""
    params = {"ids": list(ids), "seconds": seconds}
    return [row[0] for row in db.fetch(REQUESTED_LONG_AGO, params)]
