"""Finish without success: running → archived, or back in the queue, with the fence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.store import on_failure
from django_jobqueue.store.columns import MOVED, MOVED_OF_JOB, UNLESS_ARCHIVED
from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import IDLE, News
from django_jobqueue.store.on_failure import REGRESSED
from django_jobqueue.store.prepared import array_of_ids
from django_jobqueue.store.queue.finish import Finished, Holder, holder_params
from django_jobqueue.store.totals import COUNTED

MOST_FAILURES: Final = 20  # of each job, besides its first
GROUPS_PER_PLACE: Final = 50  # messages of one class in one frame

_REGRESSED: Final = REGRESSED.format(
    failures="accepted", fingerprint="mark", release="%(release)s::text"
)

# The worker counts what it writes, but does not know of these.
_COUNTED: Final = COUNTED.format(gone="gone WHERE was_to_go_back", status="archive_as")

# Everything but success. The rows are locked first: a job that was to be retried but
# that an operator cancels this very moment is archived as cancelled. Who is idle is
# told of what goes back: the worker that had it may be full by then, or stop.
END: Final = f"""
WITH outcome AS MATERIALIZED (
  SELECT given.*, %(worker_id)s::bigint AS worker_id,
         CASE WHEN given.fingerprint IS NULL THEN NULL
              WHEN EXISTS (SELECT FROM jobqueue_failuregroup AS held
                            WHERE held.fingerprint = given.fingerprint)
                OR (SELECT count(*) FROM jobqueue_failuregroup AS held
                     WHERE held.coarse = given.coarse) < {GROUPS_PER_PLACE}
              THEN given.fingerprint
              ELSE given.coarse END AS mark
    FROM jsonb_to_recordset(%(outcomes)s::jsonb) AS given (
           id uuid, fence bigint, status text, wait float8, refund integer,
           ran float8, ago float8, ended text, reason text, error_class text,
           message text, traceback text, frames jsonb, fingerprint uuid, coarse uuid,
           root_class text, coarse_class text, frame text, template text, log_tail text,
           effective_max_attempts integer)
), accepted AS MATERIALIZED (
  SELECT outcome.*, job.job_type, job.attempts AS number, job.cancel_reason,
         coalesce(outcome.status,
                  CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled' END)
         AS archive_as,
         statement_timestamp() - outcome.ago * interval '1 second' AS finished_at
    FROM outcome
    JOIN jobqueue_queuedjob AS job
      ON job.id = outcome.id AND job.fence = outcome.fence
         AND job.worker_id = outcome.worker_id
   WHERE job.id = ANY (%(ids)s::uuid[])
     FOR UPDATE OF job
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING accepted
   WHERE job.id = ANY (%(ids)s::uuid[])
     AND job.id = accepted.id AND accepted.archive_as IS NOT NULL
  RETURNING {MOVED_OF_JOB}, job.attempts - accepted.refund AS attempts, job.crashes,
            accepted.finished_at, accepted.ran, accepted.archive_as,
            accepted.ended IS NOT NULL AS started, accepted.error_class,
            accepted.message, accepted.mark, accepted.effective_max_attempts,
            accepted.status IS NULL AS was_to_go_back,
            CASE WHEN accepted.archive_as = 'cancelled'
                 THEN coalesce(accepted.cancel_reason, accepted.message,
                               accepted.reason)
                 ELSE coalesce(accepted.message, accepted.reason) END AS said
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, started_at, finished_at, wait_ms, run_ms,
         worker, release, error_class, error_message, fingerprint,
         effective_max_attempts)
  SELECT {MOVED}, attempts, crashes, archive_as,
         CASE WHEN started THEN finished_at - ran * interval '1 second' END,
         finished_at,
         greatest(0, extract(epoch FROM finished_at - run_after) - ran) * 1000,
         CASE WHEN started THEN ran * 1000 END, %(worker)s, %(release)s,
         coalesce(error_class, ''), left(coalesce(said, ''), 500), mark,
         effective_max_attempts
    FROM gone
  {UNLESS_ARCHIVED}
), {_COUNTED}, back AS (
  UPDATE jobqueue_queuedjob AS job
     SET status = 'queued', worker_id = NULL, started_at = NULL,
         attempts = job.attempts - accepted.refund,
         run_after = coalesce(clock_timestamp() + accepted.wait * interval '1 second',
                              job.run_after)
    FROM accepted
   WHERE job.id = ANY (%(ids)s::uuid[])
     AND job.id = accepted.id AND accepted.archive_as IS NULL
  RETURNING CASE WHEN {IDLE}
                 THEN pg_notify('jobqueue',
                                CASE WHEN accepted.wait IS NULL
                                     THEN '{News.BEHIND.prefix}'
                                     ELSE '{News.JOBS.prefix}' END || job.queue)::text
             END
), failure AS (
  INSERT INTO jobqueue_failure (
         job_id, job_type, number, "end", reason, started_at, finished_at, worker,
         release, error_class, error_message, traceback, frames, fingerprint,
         log_tail)
  SELECT id, job_type, number, ended,
         coalesce(CASE WHEN ended = 'cancelled' THEN cancel_reason END, reason, ''),
         finished_at - ran * interval '1 second', finished_at, %(worker)s, %(release)s,
         coalesce(error_class, ''), coalesce(message, ''), coalesce(traceback, ''),
         coalesce(frames, '[]'), mark, coalesce(log_tail, '')
    FROM accepted
   WHERE ended IS NOT NULL
), trimmed AS (
  DELETE FROM jobqueue_failure AS failure
   WHERE failure.id = ANY (ARRAY(
           SELECT old.id
             FROM accepted,
                  LATERAL (SELECT held.id
                             FROM jobqueue_failure AS held
                            WHERE held.job_id = accepted.id
                              AND held.id > (SELECT min(first.id)
                                               FROM jobqueue_failure AS first
                                              WHERE first.job_id = accepted.id)
                            ORDER BY held.id DESC
                           OFFSET {MOST_FAILURES - 1}) AS old
            WHERE accepted.ended IS NOT NULL))
), failure_group AS (
  INSERT INTO jobqueue_failuregroup (fingerprint, coarse, error_class, frame, template)
  SELECT DISTINCT ON (mark) mark, coarse,
         CASE WHEN mark = coarse THEN coarse_class ELSE root_class END, frame,
         CASE WHEN mark = coarse THEN '…' ELSE template END
    FROM accepted
   WHERE mark IS NOT NULL
      ON CONFLICT (fingerprint) DO NOTHING
  RETURNING fingerprint
), {_REGRESSED}{{on_failure}}
SELECT id FROM outcome WHERE id NOT IN (SELECT id FROM accepted)
"""

HELD_IDS: Final = "SELECT id FROM jobqueue_queuedjob WHERE id = ANY (%(ids)s::uuid[])"

# Which of these rows nobody has locked, found without waiting for any.
UNLOCKED: Final = """
SELECT id FROM jobqueue_queuedjob WHERE id = ANY (%(ids)s::uuid[])
   FOR UPDATE SKIP LOCKED
"""

# In the archive; None if the job is queued again, or has a statement of its own.
_STATUS = {
    Verb.SUCCEED: None,
    Verb.FAIL: ArchivedStatus.FAILED,
    Verb.RETRY: None,
    Verb.SNOOZE: None,
    Verb.CANCEL: ArchivedStatus.CANCELLED,
    Verb.RELEASE: None,
    Verb.EXPIRE: ArchivedStatus.EXPIRED,
}
_REFUNDED = (Verb.SNOOZE, Verb.RELEASE)


def end(
    db: Database, holder: Holder, finished: Sequence[Finished], now: float
) -> set[UUID]:
    """Archive, retry, snooze or release these; return those whose fence was wrong."""
    outcomes = json.dumps([_outcome(f, now) for f in finished])
    ids = array_of_ids([f.id for f in finished])
    params = {
        **holder_params(holder),
        "outcomes": outcomes,
        "ids": ids,
        **on_failure.params(),
    }
    rows = db.fetch(on_failure.composed(END), params)
    return {id for (id,) in rows}


def unlocked(db: Database, ids: Sequence[UUID]) -> set[UUID]:
    """The queued or running jobs among these that nobody has locked, and those that are
    gone."""
    known = db.fetch(HELD_IDS, {"ids": list(ids)})
    free = db.fetch(UNLOCKED, {"ids": list(ids)})
    locked = {id for (id,) in known} - {id for (id,) in free}
    return set(ids) - locked


def _outcome(finished: Finished, now: float) -> dict[str, Any]:
    outcome = finished.outcome
    row: dict[str, Any] = {
        "id": str(finished.id),
        "fence": finished.fence,
        "status": _STATUS[outcome.verb],
        "wait": None if outcome.verb is Verb.RELEASE else outcome.wait.total_seconds(),
        "refund": int(outcome.verb in _REFUNDED or outcome.end is None),
        "ran": finished.ran,
        "ago": now - finished.ended,
        "ended": outcome.end,
        "reason": outcome.reason,
        "log_tail": finished.log_tail,
        "effective_max_attempts": finished.max_attempts,
    }
    if (failure := outcome.failure) is not None:
        row |= {
            "error_class": failure.error_class,
            "message": failure.message,
            "traceback": failure.traceback,
            "frames": failure.frames,
        }
    if (mark := outcome.mark) is not None:
        row |= {
            "fingerprint": str(mark.value),
            "coarse": str(mark.coarse),
            "root_class": mark.error_class,
            "coarse_class": mark.coarse_class,
            "frame": mark.frame,
            "template": mark.template,
        }
    return row
