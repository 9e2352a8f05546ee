"""Expire: queued → archived as expired, also when no worker claims."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.columns import (
    EFFECTIVE_MAX_ATTEMPTS,
    MOVED,
    MOVED_OF_JOB,
    UNLESS_ARCHIVED,
)
from django_jobqueue.store.connection import Database
from django_jobqueue.store.totals import COUNTED

_COUNTED: Final = COUNTED.format(gone="gone", status="'expired'")
BATCH: Final = 500

EXPIRE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE status = 'queued' AND expires_at <= statement_timestamp()
     AND (%(only)s::uuid[] IS NULL OR id = ANY (%(only)s))
   ORDER BY expires_at
   LIMIT %(batch)s
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING held
   WHERE job.id = held.id
  RETURNING {MOVED_OF_JOB}, job.attempts, job.crashes
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, finished_at, effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, 'expired', statement_timestamp(),
         {EFFECTIVE_MAX_ATTEMPTS}
    FROM gone
  {UNLESS_ARCHIVED}
), {_COUNTED}
SELECT id, job_type FROM gone
"""

DUE: Final = """
SELECT id FROM jobqueue_queuedjob
 WHERE status = 'queued' AND expires_at <= statement_timestamp()
   AND id <> ALL (%(without)s::uuid[])
 ORDER BY expires_at
 LIMIT %(batch)s
"""

NEXT_EXPIRY: Final = """
SELECT extract(epoch FROM min(expires_at) - clock_timestamp())::float8
  FROM jobqueue_queuedjob
 WHERE status = 'queued' AND expires_at IS NOT NULL
"""


class Expired(NamedTuple):
    """A job that was archived because its time was over."""

    id: UUID
    job_type: str


def expire(db: Database, only: Sequence[UUID] | None = None) -> list[Expired]:
    """Archive a batch of expired jobs, or ``only`` these; return them."""
    params = {"batch": BATCH, "only": None if only is None else list(only)}
    return [Expired(*row) for row in db.fetch(EXPIRE, params)]


def due(db: Database, without: Collection[UUID] = ()) -> list[UUID]:
    """A batch of jobs that have expired, ``without`` these."""
    params = {"batch": BATCH, "without": list(without)}
    return [id for (id,) in db.fetch(DUE, params)]


def next_expiry(db: Database) -> float | None:
    """Seconds until the next queued job expires; None if none does."""
    seconds: float | None = db.fetch(NEXT_EXPIRY)[0][0]
    return seconds
