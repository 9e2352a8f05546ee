"""Reads what was handed over to endpoints: jobs that a program has, and that no worker
runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database

BATCH: Final = 100
CANCEL_SENT: Final = "cancel_sent"  # in the metadata of a job

HAS_ANY: Final = "SELECT EXISTS (SELECT FROM jobqueue_worker WHERE state = 'endpoint')"

HOLDER: Final = """
SELECT worker.id, worker.name, worker.release, worker.state = 'endpoint', job.fence,
       job.attempts, job.job_type
  FROM jobqueue_queuedjob AS job
  JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
 WHERE job.id = %(id)s AND job.status = 'running'
"""

# The timeout of 0 is none.
LATE: Final = f"""
SELECT late.id, late.worker_id, late.name
  FROM (SELECT job.id, job.worker_id, worker.name
          FROM jobqueue_queuedjob AS job
          JOIN jobqueue_worker AS worker
            ON worker.id = job.worker_id AND worker.state = 'endpoint'
          JOIN jobqueue_jobtype AS type ON type.name = job.job_type
         WHERE job.status = 'running'
           AND extract(epoch FROM clock_timestamp() - job.started_at)
               > nullif(extract(epoch FROM coalesce(job.timeout, type.timeout_override,
                                                    type.timeout)), 0)
                 + %(grace)s::float8
         LIMIT {BATCH}) AS late
 ORDER BY late.id
"""

# Marked before anything is sent: an endpoint is told once, whoever dies meanwhile.
UNTOLD: Final = f"""
WITH untold AS MATERIALIZED (
  SELECT job.id, worker.name
    FROM jobqueue_queuedjob AS job
    JOIN jobqueue_worker AS worker
      ON worker.id = job.worker_id AND worker.state = 'endpoint'
   WHERE job.status = 'running' AND job.cancel_requested_at IS NOT NULL
     AND NOT coalesce(job.metadata ? '{CANCEL_SENT}', false)
   LIMIT %(limit)s
     FOR UPDATE OF job SKIP LOCKED
)
UPDATE jobqueue_queuedjob AS job
   SET metadata = coalesce(job.metadata, '{{}}')
                  || jsonb_build_object('{CANCEL_SENT}', clock_timestamp())
  FROM untold
 WHERE job.id = untold.id
RETURNING job.id, job.job_type, job.fence, job.attempts, untold.name
"""

SUMMARY: Final = """
SELECT worker.id, worker.name, count(job.id),
       coalesce(max(extract(epoch FROM statement_timestamp() - job.started_at)), 0)
         ::float8
  FROM jobqueue_worker AS worker
  LEFT JOIN jobqueue_queuedjob AS job
    ON job.worker_id = worker.id AND job.status = 'running'
 WHERE worker.state = 'endpoint'
 GROUP BY worker.id, worker.name
 ORDER BY worker.name
"""


class HolderOfJob(NamedTuple):
    """Who has a running job."""

    worker: int
    name: str
    release: str
    is_endpoint: bool
    fence: int
    attempt: int
    job_type: str


class LateJob(NamedTuple):
    """A job whose endpoint has not called back in time."""

    id: UUID
    worker: int
    endpoint: str


class UntoldCancel(NamedTuple):
    """A handed-over job that is to be cancelled."""

    id: UUID
    job_type: str
    fence: int
    attempt: int
    endpoint: str


class EndpointSummary(NamedTuple):
    """An endpoint and the jobs that it has."""

    id: int
    name: str
    jobs: int
    oldest: float  # seconds since the oldest of them was claimed


def has_any(db: Database) -> bool:
    """Whether there are endpoints, in the settings of this release or of another."""
    return bool(db.fetch(HAS_ANY)[0][0])


def holder_of(db: Database, id: UUID) -> HolderOfJob | None:
    """Who has this job; None if it does not run."""
    rows = db.fetch(HOLDER, {"id": id})
    return HolderOfJob(*rows[0]) if rows else None


def late(db: Database, grace: float) -> list[LateJob]:
    """Some of the jobs that are past their timeouts by so many seconds."""
    return [LateJob(*row) for row in db.fetch(LATE, {"grace": grace})]


def take_untold_cancels(db: Database, limit: int) -> list[UntoldCancel]:
    """Jobs whose endpoints are to be told that they are cancelled. Nobody else gets
    them from now on."""
    return [UntoldCancel(*row) for row in db.fetch(UNTOLD, {"limit": limit})]


def summaries(db: Database) -> Sequence[EndpointSummary]:
    """The endpoints, by name."""
    return [EndpointSummary(*row) for row in db.fetch(SUMMARY)]
