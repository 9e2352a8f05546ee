"""Fail now: a waiting job is archived as failed, even with attempts left."""

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
from django_jobqueue.store.totals import COUNTED

_COUNTED: Final = COUNTED.format(gone="gone", status="'failed'")

# A job that is running, or being claimed this moment, is left alone.
FAIL: Final = f"""
WITH held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE id = ANY (%(ids)s::uuid[]) AND status = 'queued'
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING held
   WHERE job.id = held.id
  RETURNING {MOVED_OF_JOB}, job.attempts, job.crashes
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, finished_at, error_message,
         effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, 'failed', statement_timestamp(), %(reason)s,
         {EFFECTIVE_MAX_ATTEMPTS}
    FROM gone
  {UNLESS_ARCHIVED}
), {_COUNTED}
SELECT id FROM gone
"""


def fail(db: Database, ids: Sequence[UUID], *, reason: str) -> list[UUID]:
    """Archive these as failed; return those that were still waiting."""
    return [row[0] for row in db.fetch(FAIL, {"ids": list(ids), "reason": reason})]
