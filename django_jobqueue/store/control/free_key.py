"""Frees the unique keys of jobs, so that duplicates of them can be enqueued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import News

FREE: Final = f"""
WITH closed AS (
  DELETE FROM jobqueue_uniquewindow
   WHERE job_id = ANY (%(ids)s::uuid[])
  RETURNING job_id
), held AS MATERIALIZED (
  SELECT id FROM jobqueue_queuedjob
   WHERE id = ANY (%(ids)s::uuid[]) AND unique_key IS NOT NULL
   ORDER BY id
     FOR UPDATE
), freed AS (
  UPDATE jobqueue_queuedjob AS job
     SET unique_key = NULL
    FROM held
   WHERE job.id = held.id
  RETURNING job.id, pg_notify('jobqueue', '{News.BEHIND.prefix}' || job.queue)
)
SELECT job_id FROM closed
UNION
SELECT id FROM freed
"""


def free_keys(db: Database, ids: Sequence[UUID]) -> list[UUID]:
    """Free the unique keys of these jobs, wherever they are; return those that had
    one."""
    return [id for (id,) in db.fetch(FREE, {"ids": list(ids)})]
