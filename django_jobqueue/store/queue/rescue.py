"""Rescue: jobs of a dead worker go back to the queue, or to the archive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.failures import Failure
from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.store import failure_rollup, on_failure, rollup
from django_jobqueue.store.columns import (
    EFFECTIVE_MAX_ATTEMPTS,
    MOVED,
    MOVED_OF_JOB,
    UNLESS_ARCHIVED,
)
from django_jobqueue.store.connection import Database
from django_jobqueue.store.failure_rollup import FailureCount
from django_jobqueue.store.notify import News
from django_jobqueue.store.on_failure import REGRESSED
from django_jobqueue.store.rollup import Count

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
     AND NOT coalesce(worker.state = 'moving'
                      OR (worker.state IN ('running', 'draining')
                          AND worker.lease_until >= statement_timestamp()), false)
     AND (worker.state IS NOT DISTINCT FROM 'draining') = %(draining)s"""

_REGRESSED: Final = REGRESSED.format(
    failures="held", fingerprint="fingerprint", release="held.release"
)

# A crash spends no attempt, and is counted. A release is no failure: it belongs to no
# failure group. Archived as failed: at-most-once jobs, since nobody knows how far they
# came, and those that reached their cap. The last crash that a job is allowed happens
# alone, in a process of its own, so that it names the culprit: its error class is
# another one. SKIP LOCKED: an atomic job may be committing this very moment; the next
# round tells.
_RESCUE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT job.id, job.job_type, job.queue, job.attempts, job.started_at,
         least(job.crashes, 2147483645) + (%(crashed)s::boolean)::integer AS crashes,
         extract(epoch FROM statement_timestamp() - job.started_at) AS ran,
         greatest(0, extract(epoch FROM job.started_at - job.run_after)) AS waited,
         CASE WHEN type.delivery = 'at_most_once' THEN 'failed'
              WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
              WHEN %(crashed)s AND job.crashes >= type.max_crashes - 1 THEN 'failed'
         END AS status,
         type.delivery, type.max_crashes, mark.coarse,
         job.quarantined AND %(crashed)s AS is_culprit,
         coalesce(mark.error_class, %(error_class)s) AS error_class,
         jsonb_build_object('trace', job.metadata -> 'trace')::text AS metadata,
         CASE WHEN %(crashed)s OR type.delivery = 'at_most_once'
              THEN mark.fingerprint END AS fingerprint,
         coalesce(worker.name, '') AS worker, coalesce(worker.release, '') AS release
    FROM jobqueue_queuedjob AS job
    JOIN jobqueue_jobtype AS type ON type.name = job.job_type
    LEFT JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
    LEFT JOIN jsonb_to_recordset(%(marks)s::jsonb)
         AS mark (job_type text, is_culprit boolean, error_class text,
                  fingerprint uuid, coarse uuid)
         ON mark.job_type = job.job_type
        AND mark.is_culprit = (job.quarantined AND %(crashed)s)
   WHERE job.status = 'running' AND {{chosen}}
     AND (%(only)s::uuid[] IS NULL OR job.id = ANY (%(only)s))
   LIMIT %(batch)s
     FOR UPDATE OF job SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING held
   WHERE job.id = held.id AND held.status IS NOT NULL
  RETURNING {MOVED_OF_JOB}, job.attempts,
            least(job.crashes, 2147483645) + (%(crashed)s::boolean)::integer AS crashes,
            job.started_at, job.cancel_reason, held.status, held.waited,
            held.ran, held.delivery, held.fingerprint, held.worker, held.release,
            held.error_class
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, started_at, finished_at, wait_ms, run_ms,
         worker, release, error_class, error_message, fingerprint,
         effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, status, started_at, statement_timestamp(),
         waited * 1000, ran * 1000, worker, release, error_class,
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
         attempts = job.attempts - 1, crashes = held.crashes,
         quarantined = job.quarantined
           OR (%(crashed)s AND held.crashes + 1 >= held.max_crashes)
    FROM held
   WHERE job.id = held.id AND held.status IS NULL
), failure AS (
  INSERT INTO jobqueue_failure (
         job_id, job_type, number, "end", reason, started_at, finished_at, worker,
         release, error_class, error_message, fingerprint)
  SELECT id, job_type, attempts,
         CASE WHEN %(crashed)s THEN 'crashed' ELSE coalesce(status, 'released') END,
         %(reason)s, started_at, statement_timestamp(), worker, release,
         error_class, %(reason)s, fingerprint
    FROM held
), failure_group AS (
  INSERT INTO jobqueue_failuregroup (fingerprint, coarse, error_class, frame, template)
  SELECT DISTINCT fingerprint, coarse, error_class, job_type, %(reason)s
    FROM held
   WHERE fingerprint IS NOT NULL
      ON CONFLICT (fingerprint) DO NOTHING
  RETURNING fingerprint
), {_REGRESSED}{{{{on_failure}}}}, notified AS (
  SELECT count(pg_notify('jobqueue', '{News.BEHIND.prefix}' || queue)) AS sent
    FROM (SELECT DISTINCT queue FROM held WHERE status IS NULL) AS queues
)
SELECT held.id, held.job_type, coalesce(held.status, 'queued'), held.queue,
       held.attempts, held.crashes, held.max_crashes, coalesce(held.ran, 0)::float8,
       held.waited::float8, %(crashed)s, held.fingerprint IS NOT NULL, held.release,
       held.worker, held.metadata, held.is_culprit
  FROM held
  LEFT JOIN notified ON true
"""

RESCUE: Final = _RESCUE.format(chosen=_OF_WORKERS)
# The same for chosen jobs, unless the worker that has one is alive.
TAKE_OVER: Final = _RESCUE.format(chosen=_LOST)

HELD: Final = """
SELECT id FROM jobqueue_queuedjob
 WHERE status = 'running' AND worker_id = ANY (%(workers)s::bigint[])
   AND (%(only)s::uuid[] IS NULL OR id = ANY (%(only)s))
"""


@dataclass(frozen=True, slots=True)
class Rescued:
    """A job that was taken from a dead worker, and what it is now."""

    id: UUID
    job_type: str
    status: str  # queued, failed or cancelled
    queue: str = field(default="", compare=False)
    attempt: int = field(default=0, compare=False)  # the number of the one that ended
    crashes: int = field(default=0, compare=False)  # with this one
    max_crashes: int = field(default=0, compare=False)
    ran: float = field(default=0.0, compare=False)  # seconds since it was claimed
    waited: float = field(default=0.0, compare=False)  # seconds from due to claimed
    crashed: bool = field(default=True, compare=False)  # else its worker was stopped
    is_failure: bool = field(default=True, compare=False)  # belongs to a failure group
    release: str = field(default="", compare=False)  # of its worker
    worker: str = field(default="", compare=False)  # its name
    metadata: str | None = field(default=None, compare=False)  # JSON text; the trace
    is_culprit: bool = field(default=False, compare=False)  # it crashed in quarantine

    @property
    def error_class(self) -> str:
        """The error class of the attempt, without the package."""
        return error_class_of(self.crashed, self.is_culprit)


def rescue(
    db: Database, workers: Sequence[int], *, crashed: bool, reason: str
) -> list[Rescued]:
    """Take what these workers hold; they are dead, and so are their handlers.

    ``crashed`` counts against the jobs; without it the workers were stopped on purpose.
    ``reason`` is for people: "killed by signal 9 (SIGKILL)".
    """
    rescued: list[Rescued] = []
    while True:
        batch = rescue_some(db, workers, crashed=crashed, reason=reason)
        rescued += batch
        if len(batch) < BATCH:
            return rescued


def rescue_some(
    db: Database,
    workers: Sequence[int],
    *,
    crashed: bool,
    reason: str,
    only: Sequence[UUID] | None = None,
) -> list[Rescued]:
    """The same for one batch of the jobs, of ``only`` these if that is given; less than
    a batch is all that is left. In a transaction that counts them, too."""
    which = {"workers": list(workers), "only": None if only is None else list(only)}
    return _rescue(db, HELD_TYPES, RESCUE, crashed, reason, which)


def take_over(db: Database, ids: Sequence[UUID], *, reason: str) -> list[Rescued]:
    """Take these running jobs from workers that are gone, or whose lease lapsed; what
    a living worker has is left alone. This counts as a crash, unless the worker was
    asked to stop."""
    taken: list[Rescued] = []
    for draining in (False, True):
        which = {"ids": list(ids), "only": None, "draining": draining}
        while batch := _rescue(db, TYPES_OF, TAKE_OVER, not draining, reason, which):
            taken += batch
    return taken


def held(
    db: Database, workers: Sequence[int], only: Sequence[UUID] | None = None
) -> list[UUID]:
    """The jobs that these workers hold, of ``only`` these if that is given."""
    params = {"workers": list(workers), "only": None if only is None else list(only)}
    return [id for (id,) in db.fetch(HELD, params)]


def _rescue(
    db: Database,
    types_of: str,
    statement: str,
    crashed: bool,
    reason: str,
    which: dict[str, Any],
) -> list[Rescued]:
    types = [row[0] for row in db.fetch(types_of, which)]
    if not types:
        return []
    marks = {
        (type, is_culprit): _mark(error_class_of(crashed, is_culprit), type)
        for type in types
        for is_culprit in {False, crashed}
    }
    params: dict[str, Any] = {
        **which,
        "crashed": crashed,
        "reason": reason,
        "error_class": f"jobqueue.{error_class_of(crashed)}",
        "marks": json.dumps([_row(*of, crashed, marks[of]) for of in marks]),
        "batch": BATCH,
        **on_failure.params(),
    }
    batch = [Rescued(*row) for row in db.fetch(on_failure.composed(statement), params)]
    if batch:
        rollup.add(db, list(_counts(batch)))
        failure_rollup.add(db, _failure_counts(batch, marks))
    return batch


def error_class_of(crashed: bool, is_culprit: bool = False) -> str:
    """The error class of an attempt whose worker died, or was stopped on purpose. One
    that crashed in quarantine ran alone, so it is the culprit."""
    if is_culprit:
        return "PoisonJob"
    return "WorkerLost" if crashed else "WorkerStopped"


def _mark(error_class: str, job_type: str) -> Fingerprint:
    return Failure.synthetic(error_class, "", job_type=job_type).fingerprint


def _row(
    job_type: str, is_culprit: bool, crashed: bool, mark: Fingerprint
) -> dict[str, Any]:
    return {
        "job_type": job_type,
        "is_culprit": is_culprit,
        "error_class": f"jobqueue.{error_class_of(crashed, is_culprit)}",
        "fingerprint": str(mark.value),
        "coarse": str(mark.coarse),
    }


def _counts(rescued: Iterable[Rescued]) -> Iterable[Count]:
    """For the roll-ups of attempts."""
    counts: dict[tuple[str, str, str], Count] = {}
    for job in rescued:
        key = (job.job_type, job.queue, job.release)
        count = counts.setdefault(key, Count(*key))
        status = None if job.status == QueuedStatus.QUEUED else job.status
        outcome = "crashed" if job.crashed else status or "released"
        count.unsuccessful(
            outcome, None if status is None else ArchivedStatus(status), job.attempt
        )
        count.attempt(ran=job.ran, waited=job.waited)
    return counts.values()


def _failure_counts(
    rescued: Iterable[Rescued], marks: dict[tuple[str, bool], Fingerprint]
) -> Iterable[FailureCount]:
    """For the roll-ups of failures."""
    counts: dict[tuple[str, str, bool], FailureCount] = {}
    for job in rescued:
        mark = marks.get((job.job_type, job.is_culprit))
        if mark is None or not job.is_failure:  # claimed since the types were looked up
            continue
        of = (job.job_type, job.release)
        count = counts.setdefault((*of, job.is_culprit), FailureCount.of(mark, *of))
        if job.status == QueuedStatus.QUEUED:
            count.retried += 1
        else:
            count.failed += 1
    return counts.values()
