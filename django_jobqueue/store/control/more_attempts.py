"""Sets the maximum of attempts of waiting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database

# The one that has made the most attempts, if these are so many.
SPENT: Final = """
SELECT id, attempts FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[]) AND status = 'queued'
   AND attempts >= %(max_attempts)s
 ORDER BY attempts DESC LIMIT 1
"""

# A job that is running, or being claimed this moment, is left alone; so is one that has
# made as many attempts meanwhile.
ALLOW: Final = """
WITH held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE id = ANY (%(ids)s::uuid[]) AND status = 'queued'
     AND attempts < %(max_attempts)s
     FOR UPDATE SKIP LOCKED
)
UPDATE jobqueue_queuedjob AS job
   SET max_attempts = %(max_attempts)s
  FROM held
 WHERE job.id = held.id
RETURNING job.id
"""


def spent(
    db: Database, ids: Sequence[UUID], max_attempts: int
) -> tuple[UUID, int] | None:
    """The waiting job that has made the most attempts, and how many, if one has made
    these, or more."""
    rows = db.fetch(SPENT, {"ids": list(ids), "max_attempts": max_attempts})
    return (rows[0][0], rows[0][1]) if rows else None


def allow(db: Database, ids: Sequence[UUID], max_attempts: int) -> list[UUID]:
    """Set the maximum of attempts; return the jobs that were still waiting and have
    made fewer."""
    rows = db.fetch(ALLOW, {"ids": list(ids), "max_attempts": max_attempts})
    return [row[0] for row in rows]
