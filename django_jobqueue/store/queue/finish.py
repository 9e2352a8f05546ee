"""Finish: running → archived, or back in the queue; always with the fence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.store import arrays, on_failure
from django_jobqueue.store.columns import MOVED, MOVED_OF_JOB, UNLESS_ARCHIVED
from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import IDLE, News
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.regressions import REGRESSED
from django_jobqueue.store.totals import COUNTED

MOST_FAILURES: Final = 20  # of each job, besides its first
GROUPS_PER_PLACE: Final = 50  # messages of one class in one frame

# Sent twice, the second time changes nothing: the row is gone, or its fence is another.
# Only a running job has a worker. There is no `status = 'running'` and no constant in
# the condition on the worker: from either the planner may conclude that next to no row
# is meant. The jobs are found by their ids, and joined with the outcomes by a hash (see
# FINISHING in store/connection.py): a plan that was made for an empty table and
# compares each job with each outcome takes 8 s for 1,000 of them; this one has no
# other way, and takes 7 % less than a lookup for each.
SUCCEED: Final = PreparedStatement(f"""
WITH outcome AS MATERIALIZED (
  SELECT given.*, %(worker_id)s::bigint AS worker_id
    FROM ROWS FROM (
           unnest(%(ids)s::uuid[], %(fences)s::bigint[], %(ran)s::bigint[],
                  %(ago)s::bigint[]),
           jsonb_array_elements(%(results)s::jsonb))
         AS given (id, fence, ran, ago, result)
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING outcome
   WHERE job.id = ANY (%(ids)s::uuid[])
     AND job.id = outcome.id AND job.fence = outcome.fence
     AND job.worker_id = outcome.worker_id
  RETURNING {MOVED_OF_JOB}, job.attempts, job.crashes, outcome.ran, outcome.result,
            statement_timestamp() - outcome.ago * interval '1 microsecond'
            AS finished_at
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, started_at, finished_at, wait_ms, run_ms,
         worker, release, result)
  SELECT {MOVED}, attempts, crashes, 'succeeded',
         finished_at - ran * interval '1 microsecond', finished_at,
         greatest(0, date_part('epoch', finished_at - run_after) * 1e3::float8
                     - ran / 1e3::float8),
         ran / 1e3::float8, %(worker)s, %(release)s, nullif(result, 'null')
    FROM gone
)
SELECT id FROM outcome WHERE id NOT IN (SELECT id FROM gone)
""")

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
_BY_ID = attrgetter("id.int")
_REFUNDED = (Verb.SNOOZE, Verb.RELEASE)


class Holder(NamedTuple):
    """The worker that claimed the jobs, and finishes them."""

    worker_id: int
    name: str  # host:pid
    release: str


@dataclass(slots=True)
class Finished:
    """A claim and what came of it."""

    id: UUID
    fence: int
    outcome: Outcome
    ran: float  # seconds that the attempt took
    ended: float  # time.monotonic() at its end
    log_tail: str = ""  # the last lines of an attempt that did not succeed
    max_attempts: int | None = None  # the limit that applied to it; None is unlimited


def succeed(
    db: Database, holder: Holder, finished: Sequence[Finished], now: float
) -> set[UUID]:
    """Archive these as succeeded; return the ids of those whose fence was wrong.

    Raises UniqueViolation, and does nothing, if one of the ids is archived already.
    ``now`` is time.monotonic(); an end time is sent as an age, so the host's clock does
    not matter. The rows are locked in the order of their ids, as by whoever cancels
    many, so that the two do not deadlock.
    """
    finished = _in_order(finished)
    rows = db.fetch(
        SUCCEED,
        {
            **_holder_params(holder),
            "ids": arrays.of_ids([f.id for f in finished]),
            "fences": arrays.of_numbers([f.fence for f in finished]),
            "ran": arrays.of_numbers([int(f.ran * 1e6) for f in finished]),
            "ago": arrays.of_numbers([int((now - f.ended) * 1e6) for f in finished]),
            "results": f"[{','.join([f.outcome.result or 'null' for f in finished])}]",
        },
    )
    return {id for (id,) in rows}


def end(
    db: Database, holder: Holder, finished: Sequence[Finished], now: float
) -> set[UUID]:
    """Archive, retry, snooze or release these; return those whose fence was wrong."""
    outcomes = json.dumps([_outcome(f, now) for f in finished])
    ids = arrays.of_ids([f.id for f in finished])
    params = {
        **_holder_params(holder),
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


def _in_order(finished: Sequence[Finished]) -> Sequence[Finished]:
    """By id. Mostly they are so already, which is found out in half the time."""
    ids = [f.id.int for f in finished]
    return finished if ids == sorted(ids) else sorted(finished, key=_BY_ID)


def _holder_params(holder: Holder) -> dict[str, Any]:
    return {
        "worker_id": holder.worker_id,
        "worker": holder.name,
        "release": holder.release,
    }


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
