"""Expire: queued → archived expired, also when nobody claims. A claim refuses them
already."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.columns import (
    EFFECTIVE_MAX_ATTEMPTS,
    MOVED,
    MOVED_OF_JOB,
    UNLESS_ARCHIVED,
)
from django_jobqueue.store.connection import Database

BATCH: Final = 500

EXPIRE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE status = 'queued' AND expires_at <= statement_timestamp()
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
)
SELECT id, job_type FROM gone
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


def expire(db: Database) -> list[Expired]:
    """Archive a batch of expired jobs; return them."""
    return [Expired(*row) for row in db.fetch(EXPIRE, {"batch": BATCH})]


def next_expiry(db: Database) -> float | None:
    """Seconds until the next queued job expires; None if none does."""
    seconds: float | None = db.fetch(NEXT_EXPIRY)[0][0]
    return seconds
