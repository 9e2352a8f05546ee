"""Overrun: reads attempts past their timeout whose process is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database

# One that was to be cancelled is no failure: the rescue of the worker's jobs cancels
# it. The timeout of 0 is none, and such an attempt has no other.
OVERRUN: Final = """
SELECT job.id, job.job_type, job.queue, job.fence, job.attempts, job.max_attempts,
       job.backoff::text, type.delivery, type.max_attempts, type.max_attempts_override,
       extract(epoch FROM coalesce(job.timeout, type.timeout_override, type.timeout)
              )::float8,
       coalesce(extract(epoch FROM statement_timestamp() - job.started_at), 0)::float8,
       greatest(0, extract(epoch FROM job.started_at - job.run_after))::float8,
       coalesce(worker.name, ''), coalesce(worker.release, ''), job.crashes,
       jsonb_build_object('trace', job.metadata -> 'trace')::text
  FROM jobqueue_queuedjob AS job
  JOIN jobqueue_jobtype AS type ON type.name = job.job_type
  LEFT JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
 WHERE job.id = ANY (%(ids)s::uuid[]) AND job.status = 'running'
   AND job.worker_id = %(worker)s AND job.cancel_requested_at IS NULL
"""


class Overrun(NamedTuple):
    """An attempt that ran too long, and the policy of its type as the row has it."""

    id: UUID
    job_type: str
    queue: str
    fence: int
    attempt: int
    own_attempts: int | None  # of this job
    own_backoff: str | None  # likewise; JSON text
    delivery: str
    declared_attempts: int | None
    attempts_override: int | None
    timeout: float | None  # seconds
    ran: float  # seconds since it was claimed
    waited: float  # seconds from due to claimed
    worker: str
    release: str
    crashes: int
    metadata: str | None  # JSON text; the trace


def overrun(db: Database, worker: int, ids: Sequence[UUID]) -> list[Overrun]:
    """The attempts at these jobs that this worker still holds."""
    rows = db.fetch(OVERRUN, {"worker": worker, "ids": list(ids)})
    return [Overrun(*row) for row in rows]
