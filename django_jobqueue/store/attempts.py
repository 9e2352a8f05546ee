"""How many attempts a waiting job may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database

# A job that is running, or being claimed this moment, is left alone.
ALLOW: Final = """
WITH held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE id = ANY (%(ids)s::uuid[]) AND status = 'queued'
     FOR UPDATE SKIP LOCKED
)
UPDATE jobqueue_queuedjob AS job
   SET max_attempts = %(max_attempts)s
  FROM held
 WHERE job.id = held.id
RETURNING job.id
"""


def allow(db: Database, ids: Sequence[UUID], max_attempts: int) -> list[UUID]:
    """Let these have so many attempts; return those that were still waiting."""
    rows = db.fetch(ALLOW, {"ids": list(ids), "max_attempts": max_attempts})
    return [row[0] for row in rows]
