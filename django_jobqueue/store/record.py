"""One job and the ends of its attempts, wherever it is: one read of all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.arguments import from_json
from django_jobqueue.store.connection import Database

# The failures are aggregated once, by their index, whichever table has the job.
RECORD: Final = """
WITH job AS (
  SELECT job.id, job.job_type, job.queue, job.priority, job.status, job.data,
         job.created_at, job.attempts, job.max_attempts, job.started_at,
         NULL::timestamptz AS finished_at, coalesce(worker.name, '') AS worker,
         NULL::jsonb AS result, '' AS error_class, '' AS error_message
    FROM jobqueue_queuedjob AS job
    LEFT JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
   WHERE job.id = %(id)s
  UNION ALL
  SELECT job.id, job.job_type, job.queue, job.priority, job.status, job.data,
         job.created_at, job.attempts, job.max_attempts, job.started_at,
         job.finished_at, job.worker, job.result, job.error_class, job.error_message
    FROM jobqueue_archivedjob AS job
   WHERE job.id = %(id)s
)
SELECT job.id, job.job_type, job.queue, job.priority, job.status, job.data::text,
       job.created_at, job.attempts, job.max_attempts, job.started_at, job.finished_at,
       job.worker, job.result::text, job.error_class, job.error_message,
       coalesce(type.handler, ''), ends.first_start, ends.last_start, ends.listed::text
  FROM job
  LEFT JOIN jobqueue_jobtype AS type ON type.name = job.job_type
 CROSS JOIN (
       SELECT min(started_at) AS first_start, max(started_at) AS last_start,
              jsonb_agg(jsonb_build_array(number, "end", worker, error_class,
                                          error_message, reason, traceback)
                        ORDER BY id) AS listed
         FROM jobqueue_failure
        WHERE job_id = %(id)s) AS ends
"""

MADE: Final = """
SELECT id, created_at, queue, priority FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[])
UNION ALL
SELECT id, created_at, queue, priority FROM jobqueue_archivedjob
 WHERE id = ANY (%(ids)s::uuid[])
"""


class End(NamedTuple):
    """How an attempt that did not succeed came to its end."""

    number: int  # of the attempt
    end: str  # see states.AttemptEnd
    worker: str
    error_class: str
    error_message: str
    reason: str
    traceback: str


class Made(NamedTuple):
    """What the database decided about a job when it was enqueued."""

    created_at: datetime
    queue: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A job as it is now, and all that is known of its attempts."""

    id: UUID
    job_type: str
    queue: str
    priority: int
    status: str  # queued, running, succeeded, failed, expired or cancelled
    data: Any
    created_at: datetime
    attempts: int
    max_attempts: int | None  # of this job alone
    started_at: datetime | None  # of its last attempt, unless it waits
    finished_at: datetime | None
    worker: str
    result: Any
    error_class: str
    error_message: str
    handler: str  # as the row of the job type names it
    first_start: datetime | None  # of the attempts in ``ends``
    last_start: datetime | None
    ends: tuple[End, ...]  # oldest first; of many the first and the latest


def record(db: Database, id: UUID) -> Record | None:
    """The job with this id; None if there is none."""
    rows = db.fetch(RECORD, {"id": id})
    if not rows:
        return None
    row = rows[-1]
    ends = from_json(row[18]) if row[18] else []
    return Record(
        id=row[0],
        job_type=row[1],
        queue=row[2],
        priority=row[3],
        status=row[4],
        data=from_json(row[5]),
        created_at=row[6],
        attempts=row[7],
        max_attempts=row[8],
        started_at=row[9],
        finished_at=row[10],
        worker=row[11],
        result=None if row[12] is None else from_json(row[12]),
        error_class=row[13],
        error_message=row[14],
        handler=row[15],
        first_start=row[16],
        last_start=row[17],
        ends=tuple(End(*end) for end in ends),
    )


def made(db: Database, ids: Sequence[UUID]) -> dict[UUID, Made]:
    """What was decided about these jobs, wherever they are."""
    rows = db.fetch(MADE, {"ids": list(ids)})
    return {id: Made(*decided) for id, *decided in rows}
