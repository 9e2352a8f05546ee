"""Reads one job and its attempts, queued or archived, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.find import FIND, job_of
from django_jobqueue.store.rows import Job
from django_jobqueue.text.json_reading import read_json

# The failures are aggregated once, by their index, whichever table has the job.
RECORD: Final = f"""
WITH job AS ({FIND})
SELECT job.*, ends.first_start, ends.last_start, ends.listed::text
  FROM job
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
    """The end of an attempt that did not succeed."""

    number: int  # of the attempt
    end: str  # see states.AttemptEnd
    worker: str
    error_class: str
    error_message: str
    reason: str
    traceback: str


class Made(NamedTuple):
    """The decisions of the database about a job when it was enqueued."""

    created_at: datetime
    queue: str
    priority: int


class Record(NamedTuple):
    """A job as it is now, and all that is known of its attempts."""

    job: Job
    first_start: datetime | None  # of the attempts in ``ends``
    last_start: datetime | None
    ends: tuple[End, ...]  # oldest first; of many the first and the latest


def record(db: Database, id: UUID) -> Record | None:
    """The job with this id; None if there is none."""
    rows = db.fetch(RECORD, {"id": id})
    if not rows:
        return None
    *job, first_start, last_start, listed = rows[-1]
    return Record(
        job=job_of(job),
        first_start=first_start,
        last_start=last_start,
        ends=tuple(End(*end) for end in read_json(listed or "[]")),
    )


def made(db: Database, ids: Sequence[UUID]) -> dict[UUID, Made]:
    """The decisions about these jobs, queued or archived."""
    rows = db.fetch(MADE, {"ids": list(ids)})
    return {id: Made(*decided) for id, *decided in rows}
