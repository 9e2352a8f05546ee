"""Rescue: what a worker held when it died goes back to the queue, or to the archive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django_jobqueue.failures import Failure
from django_jobqueue.fingerprints import Fingerprint
from django_jobqueue.states import QueuedStatus
from django_jobqueue.store import failure_rollup
from django_jobqueue.store.columns import (
    EFFECTIVE_MAX_ATTEMPTS,
    MOVED,
    MOVED_OF_JOB,
    UNLESS_ARCHIVED,
)
from django_jobqueue.store.connection import Database
from django_jobqueue.store.failure_rollup import FailureCount

BATCH: Final = 500

HELD_TYPES: Final = """
SELECT DISTINCT job.job_type
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'running' AND job.worker_id = ANY (%(workers)s::bigint[])
"""

TYPES_OF: Final = """
SELECT DISTINCT job_type FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[]) AND status = 'running'
"""

_OF_WORKERS: Final = "job.worker_id = ANY (%(workers)s::bigint[])"
_LOST: Final = """job.id = ANY (%(ids)s::uuid[])
     AND NOT coalesce(worker.state IN ('running', 'draining')
                      AND worker.lease_until >= statement_timestamp(), false)"""

# A crash spends no attempt, and is counted. Archived as failed: at-most-once jobs,
# since nobody knows how far they came, and those that reached their cap. The last crash
# that a job is allowed happens alone, in a process of its own, so that it names the
# culprit. SKIP LOCKED: an atomic job may be committing this very moment; the next round
# tells.
RESCUE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT job.id, job.job_type, job.queue, job.attempts,
         CASE WHEN type.delivery = 'at_most_once' THEN 'failed'
              WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
              WHEN %(crashed)s AND job.crashes + 1 >= type.max_crashes THEN 'failed'
         END AS status,
         type.delivery, type.max_crashes, mark.fingerprint, mark.coarse,
         coalesce(worker.name, '') AS worker, coalesce(worker.release, '') AS release
    FROM jobqueue_queuedjob AS job
    JOIN jobqueue_jobtype AS type ON type.name = job.job_type
    LEFT JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
    LEFT JOIN jsonb_to_recordset(%(marks)s::jsonb)
         AS mark (job_type text, fingerprint uuid, coarse uuid)
         ON mark.job_type = job.job_type
   WHERE job.status = 'running' AND {_OF_WORKERS}
   LIMIT %(batch)s
     FOR UPDATE OF job SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING held
   WHERE job.id = held.id AND held.status IS NOT NULL
  RETURNING {MOVED_OF_JOB}, job.attempts,
            job.crashes + %(crashed)s::integer AS crashes, job.started_at,
            job.cancel_reason, held.status, held.delivery, held.fingerprint,
            held.worker, held.release
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, started_at, finished_at, wait_ms, run_ms,
         worker, release, error_class, error_message, fingerprint,
         effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, status, started_at, statement_timestamp(),
         greatest(0, extract(epoch FROM started_at - run_after)) * 1000,
         extract(epoch FROM statement_timestamp() - started_at) * 1000,
         worker, release, %(error_class)s,
         CASE WHEN delivery = 'at_most_once' THEN 'outcome unknown: ' ELSE '' END
         || coalesce(CASE WHEN status = 'cancelled' THEN cancel_reason END,
                     %(reason)s::text),
         CASE WHEN status = 'failed' THEN fingerprint END,
         {EFFECTIVE_MAX_ATTEMPTS}
    FROM gone
  {UNLESS_ARCHIVED}
), back AS (
  UPDATE jobqueue_queuedjob AS job
     SET status = 'queued', worker_id = NULL, started_at = NULL,
         attempts = job.attempts - 1, crashes = job.crashes + %(crashed)s::integer,
         alone = job.alone OR (%(crashed)s AND job.crashes + 2 >= held.max_crashes)
    FROM held
   WHERE job.id = held.id AND held.status IS NULL
), failure AS (
  INSERT INTO jobqueue_failure (
         job_id, job_type, number, "end", reason, finished_at, worker, release,
         error_class, error_message, fingerprint)
  SELECT id, job_type, attempts, %(ended)s, %(reason)s, statement_timestamp(), worker,
         release, %(error_class)s, %(reason)s, fingerprint
    FROM held
), failure_group AS (
  INSERT INTO jobqueue_failuregroup (fingerprint, coarse, error_class, frame, template)
  SELECT DISTINCT fingerprint, coarse, %(error_class)s, job_type, %(reason)s
    FROM held
   WHERE fingerprint IS NOT NULL
      ON CONFLICT (fingerprint) DO NOTHING
), regressed AS (
  UPDATE jobqueue_failuregroup AS grouped
     SET state = 'open', regressed_at = statement_timestamp(),
         last_seen = statement_timestamp()
    FROM held
   WHERE grouped.fingerprint = held.fingerprint AND grouped.state = 'resolved'
     AND NOT grouped.excused @> to_jsonb(held.release)
), notified AS (
  SELECT count(pg_notify('jobqueue', 'b:' || queue)) AS sent
    FROM (SELECT DISTINCT queue FROM held WHERE status IS NULL) AS queues
)
SELECT held.id, held.job_type, coalesce(held.status, 'queued')
  FROM held
  LEFT JOIN notified ON true
"""

# The same for chosen jobs, unless the worker that has one is alive.
TAKE_OVER: Final = RESCUE.replace(_OF_WORKERS, _LOST)


@dataclass(frozen=True, slots=True)
class Rescued:
    """A job that was taken from a dead worker, and what it is now."""

    id: UUID
    job_type: str
    status: str  # queued, failed or cancelled


def rescue(
    db: Database, workers: Sequence[int], *, crashed: bool, reason: str
) -> list[Rescued]:
    """Take what these workers hold; they are dead, and so are their handlers.

    ``crashed`` counts against the jobs; without it the workers were stopped on purpose.
    ``reason`` is for people: "killed by signal 9 (SIGKILL)".
    """
    return _rescue(db, HELD_TYPES, RESCUE, crashed, reason, workers=list(workers))


def take_over(db: Database, ids: Sequence[UUID], *, reason: str) -> list[Rescued]:
    """Take these running jobs from workers that are gone, or whose lease lapsed; what
    a living worker has is left alone. This counts as a crash."""
    return _rescue(db, TYPES_OF, TAKE_OVER, True, reason, ids=list(ids))


def _rescue(
    db: Database,
    types_of: str,
    statement: str,
    crashed: bool,
    reason: str,
    **which: list[Any],
) -> list[Rescued]:
    error_class = "WorkerLost" if crashed else "WorkerStopped"
    rescued: list[Rescued] = []
    while True:
        types = [row[0] for row in db.fetch(types_of, which)]
        if not types:
            return rescued
        marks = {type: _mark(error_class, type) for type in types}
        params: dict[str, Any] = {
            **which,
            "crashed": crashed,
            "ended": "crashed" if crashed else "released",
            "reason": reason,
            "error_class": f"jobqueue.{error_class}",
            "marks": json.dumps([_row(type, mark) for type, mark in marks.items()]),
            "batch": BATCH,
        }
        batch = [Rescued(*row) for row in db.fetch(statement, params)]
        rescued += batch
        if batch:
            failure_rollup.add(db, _counts(batch, marks))
        if len(batch) < BATCH:
            return rescued


def _mark(error_class: str, job_type: str) -> Fingerprint:
    return Failure.synthetic(error_class, "", job_type=job_type).fingerprint


def _row(job_type: str, mark: Fingerprint) -> dict[str, str]:
    return {
        "job_type": job_type,
        "fingerprint": str(mark.value),
        "coarse": str(mark.coarse),
    }


def _counts(
    rescued: Iterable[Rescued], marks: dict[str, Fingerprint]
) -> Iterable[FailureCount]:
    counts: dict[str, FailureCount] = {}
    for job in rescued:
        mark = marks.get(job.job_type)
        if mark is None:  # claimed since the types were looked up
            continue
        count = counts.setdefault(job.job_type, FailureCount.of(mark))
        if job.status == QueuedStatus.QUEUED:
            count.retried += 1
        else:
            count.failed += 1
    return counts.values()
