"""Finds one job in both tables at once, so that a move between them hides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.fitting_names import FITS, fitting
from django_jobqueue.store.rows import Job, tags_of
from django_jobqueue.text.json_reading import read_json

QUEUED: Final = """
SELECT job.id, job.job_type, job.queue, job.priority, job.status, job.data::text,
       job.run_after, job.expires_at, job.created_at, job.attempts, job.max_attempts,
       job.crashes, job.started_at, NULL::timestamptz, coalesce(worker.name, ''), NULL,
       '', '', NULL::uuid, job.replay_of, job.metadata::text, job.tags::text,
       job.timeout, job.backoff::text
  FROM jobqueue_queuedjob AS job
  LEFT JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
"""
ARCHIVED: Final = """
SELECT job.id, job.job_type, job.queue, job.priority, job.status, job.data::text,
       job.run_after, job.expires_at, job.created_at, job.attempts, job.max_attempts,
       job.crashes, job.started_at, job.finished_at, job.worker, job.result::text,
       job.error_class, job.error_message, job.fingerprint, job.replay_of,
       job.metadata::text, job.tags::text, job.timeout, job.backoff::text
  FROM jobqueue_archivedjob AS job
"""
FIND: Final = f"""
{QUEUED} WHERE job.id = %(id)s
UNION ALL
{ARCHIVED} WHERE job.id = %(id)s
"""

KNOWN_NAMES: Final = f"""
SELECT name FROM jobqueue_jobtype AS type
 WHERE {FITS} ORDER BY name
"""


def find(db: Database, id: UUID) -> Job | None:
    """The job with this id, queued or archived; None if there is none."""
    rows = db.fetch(FIND, {"id": id})
    return job_of(rows[-1]) if rows else None


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row of ``QUEUED`` or ``ARCHIVED``."""
    return Job(
        id=row[0],
        job_type=row[1],
        queue=row[2],
        priority=row[3],
        status=row[4],
        data=read_json(row[5]),
        run_after=row[6],
        expires_at=row[7],
        created_at=row[8],
        attempts=row[9],
        max_attempts=row[10],
        crashes=row[11],
        started_at=row[12],
        finished_at=row[13],
        worker=row[14],
        result=None if row[15] is None else read_json(row[15]),
        error_class=row[16],
        error_message=row[17],
        fingerprint=row[18],
        replay_of=row[19],
        metadata=None if row[20] is None else read_json(row[20]),
        tags=tags_of(row[21]),
        timeout=row[22],
        backoff=None if row[23] is None else read_json(row[23]),
    )


def known_names(db: Database, patterns: Sequence[str] = ()) -> list[str]:
    """The names of the job types that have a row, of those that one of these patterns
    fits; without patterns of all."""
    return [name for (name,) in db.fetch(KNOWN_NAMES, fitting(patterns))]
