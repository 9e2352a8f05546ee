"""Reads the progress of jobs, queued or archived, in one statement."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.store.connection import Database
from django_jobqueue.text import numbers

# By keys alone: 1,000 ids among a million archived jobs are 4 index scans each. What an
# earlier attempt told is not how far a running one is.
PROGRESS: Final = """
SELECT job.id, job.job_type, job.status, job.attempts, job.since,
       report.done, report.total, coalesce(report.note, ''), report.updated_at
  FROM (
    SELECT id, job_type, status, attempts, fence,
           coalesce(started_at, run_after) AS since
      FROM jobqueue_queuedjob
     WHERE id = ANY (%(ids)s::uuid[])
     UNION ALL
    SELECT id, job_type, status, attempts, NULL, finished_at
      FROM jobqueue_archivedjob
     WHERE id = ANY (%(ids)s::uuid[])
  ) AS job
  LEFT JOIN LATERAL (
    SELECT told.done, told.total, told.note, told.updated_at
      FROM jobqueue_report AS told
     WHERE told.job_id = job.id
       AND (job.status <> 'running' OR told.fence = job.fence)
     ORDER BY told.fence DESC
     LIMIT 1
  ) AS report ON true
"""


class Progress(NamedTuple):
    """The progress of a job when it was read."""

    id: UUID
    job_type: str
    status: str  # queued, running, succeeded, failed, expired or cancelled
    attempt: int  # the number of the last one; 0 if there was none
    since: datetime  # it is due, has been running, or is over
    done: float | None = None  # as the handler counts; None if it told nothing
    total: float | None = None
    note: str = ""
    updated_at: datetime | None = None  # when the handler told that

    @property
    def is_over(self) -> bool:
        """True if the job is archived."""
        return self.status not in QueuedStatus.values

    @property
    def fraction(self) -> float | None:
        """The share that is done, 0 to 1; None if nobody knows. A job that succeeded is
        done."""
        if self.status == ArchivedStatus.SUCCEEDED:
            return 1.0
        return numbers.fraction(self.done, self.total)

    @property
    def percent(self) -> int | None:
        """The share in whole percent; 100 only when everything is done."""
        if self.status == ArchivedStatus.SUCCEEDED:
            return 100
        return numbers.whole_percent(self.done, self.total)

    @property
    def text(self) -> str:
        """ "30 of 120 (25 %)" in the language of this moment; empty if the handler told
        no number."""
        return numbers.done_text(self.done, self.total)


def progress(db: Database, ids: Iterable[UUID]) -> dict[UUID, Progress]:
    """The progress of these jobs; a job that was pruned is missing."""
    rows = db.fetch(PROGRESS, {"ids": list(ids)})
    return {
        row[0]: Progress(
            id=row[0],
            job_type=row[1],
            status=row[2],
            attempt=row[3],
            since=row[4],
            done=_finite(row[5]),
            total=_finite(row[6]),
            note=row[7],
            updated_at=row[8],
        )
        for row in rows
    }


def _finite(value: float | None) -> float | None:
    """None for what plain SQL may have written, and JSON does not have."""
    return value if value is not None and math.isfinite(value) else None
