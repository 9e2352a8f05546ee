"""Run now, reschedule: queued → queued at another time, or in another lane."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import News

# A job that is running, or being claimed this moment, is left alone.
RESCHEDULE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE id = ANY (%(ids)s::uuid[]) AND status = 'queued'
     FOR UPDATE SKIP LOCKED
)
UPDATE jobqueue_queuedjob AS job
   SET run_after = CASE WHEN %(now)s OR %(run_after)s::timestamptz <= clock_timestamp()
                        THEN clock_timestamp()
                        ELSE coalesce(%(run_after)s::timestamptz, job.run_after) END,
       priority = coalesce(%(priority)s, job.priority),
       queue = coalesce(%(queue)s, job.queue)
  FROM held
 WHERE job.id = held.id
RETURNING job.id, pg_notify('jobqueue', '{News.BEHIND.prefix}' || job.queue)
"""


def reschedule(
    db: Database,
    ids: Sequence[UUID],
    *,
    now: bool = False,
    run_after: datetime | None = None,
    priority: int | None = None,
    queue: str | None = None,
) -> list[UUID]:
    """Change when and where these jobs run; return those that were still waiting."""
    rows = db.fetch(
        RESCHEDULE,
        {
            "ids": list(ids),
            "now": now,
            "run_after": run_after,
            "priority": priority,
            "queue": queue,
        },
    )
    return [row[0] for row in rows]
