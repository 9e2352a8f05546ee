"""The rows of endpoints: the jobs that they have, which no worker runs, and what they
answered."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote.endpoint_answers import (
    MINUTES,
    AnswerClass,
    AnswerCount,
    EndpointAnswer,
    endpoint_answers,
)
from django_jobqueue.contrib.remote.remote_workers import KEEP_STARTS, RAN
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.metrics.metric import Label, RoomMetrics, Sample, counter, gauge
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.hand_over import declare_endpoints

BATCH: Final = 100
SEEN_EVERY: Final = 15  # seconds
CANCEL_SENT: Final = "cancel_sent"  # in the metadata of a job

_NEWER: Final = """
           CASE WHEN (held.answers->'{name}'->>'at')::float8
                     > (given.{name}->>'at')::float8
                  OR given.{name} IS NULL
                THEN held.answers->'{name}' ELSE given.{name} - 'age' END"""

HAS_ANY: Final = "SELECT EXISTS (SELECT FROM jobqueue_worker WHERE state = 'endpoint')"

HOLDER: Final = """
SELECT worker.id, worker.name, worker.release, worker.state = 'endpoint'
  FROM jobqueue_queuedjob AS job
  JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
 WHERE job.id = %(id)s AND job.status = 'running'
"""

SEE: Final = f"""
WITH seen AS MATERIALIZED (
  SELECT id, renewed_at, lease_seconds, state FROM jobqueue_worker
   WHERE state = 'endpoint'
     AND (renewed_at < clock_timestamp() - interval '{SEEN_EVERY} seconds'
          OR renewed_at > clock_timestamp())
     AND EXISTS (SELECT FROM jobqueue_queuedjob AS job
                  WHERE job.status = 'running' AND job.worker_id = jobqueue_worker.id)
   ORDER BY name COLLATE "C"
     FOR NO KEY UPDATE
), {KEEP_STARTS}
UPDATE jobqueue_worker AS worker
   SET renewed_at = clock_timestamp()
  FROM seen
 WHERE worker.id = seen.id
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
           AND {RAN}
               > nullif(extract(epoch FROM coalesce(job.timeout, type.timeout_override,
                                                    type.timeout)), 0)
                 + %(grace)s::float8
         LIMIT {BATCH}) AS late
 ORDER BY late.id
"""

# Marked before anything is sent: an endpoint is told once, whoever dies meanwhile. The
# mark names the job, because replays and followers copy it.
UNTOLD: Final = f"""
WITH untold AS MATERIALIZED (
  SELECT job.id, worker.name
    FROM jobqueue_queuedjob AS job
    JOIN jobqueue_worker AS worker
      ON worker.id = job.worker_id AND worker.state = 'endpoint'
   WHERE job.status = 'running' AND job.cancel_requested_at IS NOT NULL
     AND job.metadata ->> '{CANCEL_SENT}' IS DISTINCT FROM job.id::text
   LIMIT %(limit)s
     FOR UPDATE OF job SKIP LOCKED
)
UPDATE jobqueue_queuedjob AS job
   SET metadata = coalesce(job.metadata, '{{}}')
                  || jsonb_build_object('{CANCEL_SENT}', job.id)
  FROM untold
 WHERE job.id = untold.id
RETURNING job.id, job.job_type, job.fence, job.attempts, untold.name
"""

SUMMARY: Final = """
SELECT worker.id, worker.name, count(job.id),
       coalesce(max(extract(epoch FROM statement_timestamp() - job.started_at)), 0)
         ::float8,
       worker.answers::text, extract(epoch FROM statement_timestamp())::float8
  FROM jobqueue_worker AS worker
  LEFT JOIN jobqueue_queuedjob AS job
    ON job.worker_id = worker.id AND job.status = 'running'
 WHERE worker.state = 'endpoint'
 GROUP BY worker.id, worker.name
 ORDER BY worker.name
"""

# Whichever process writes first, the row comes to the same: the newest answer is kept,
# and counts are added up. The times are ages until here, since the clocks of hosts
# differ. Rows are locked by name, so that processes never wait in a ring.
ADD_ANSWERS: Final = f"""
WITH given AS MATERIALIZED (
  SELECT endpoint, answered, failed,
         last || jsonb_build_object('at', now - (last->>'age')::float8) AS last,
         last_failure || jsonb_build_object('at', now - (last_failure->>'age')::float8)
           AS last_failure,
         floor(now / 60)::bigint AS minute
    FROM jsonb_to_recordset(%(answers)s::jsonb) AS given (
           endpoint text, answered integer, failed integer, last jsonb,
           last_failure jsonb),
         (SELECT extract(epoch FROM statement_timestamp())::float8 AS now) AS clock
), held AS MATERIALIZED (
  SELECT id, name, answers
    FROM jobqueue_worker
   WHERE state = 'endpoint' AND name IN (SELECT endpoint FROM given)
   ORDER BY name COLLATE "C"
     FOR NO KEY UPDATE
)
UPDATE jobqueue_worker AS worker
   SET answers = jsonb_strip_nulls(jsonb_build_object(
         'last', {_NEWER.format(name="last")},
         'last_failure', {_NEWER.format(name="last_failure")},
         'minutes', (
           SELECT jsonb_object_agg(minute, jsonb_build_array(answered, failed))
             FROM (SELECT minute, sum(answered) AS answered, sum(failed) AS failed
                     FROM (SELECT key::bigint AS minute,
                                  (value->>0)::bigint AS answered,
                                  (value->>1)::bigint AS failed
                             FROM jsonb_each(coalesce(held.answers->'minutes', '{{}}'))
                            UNION ALL
                           SELECT given.minute, given.answered, given.failed) AS each
                    WHERE minute > given.minute - {MINUTES}
                    GROUP BY minute) AS summed)))
  FROM held
  JOIN given ON given.endpoint = held.name
 WHERE worker.id = held.id
RETURNING worker.name
"""


class HolderOfJob(NamedTuple):
    """The holder of a running job."""

    worker: int
    name: str
    release: str
    is_endpoint: bool


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


def has_any(db: Database) -> bool:
    """True if there are endpoints, in the settings of this release or of another."""
    return bool(db.fetch(HAS_ANY)[0][0])


def holder_of(db: Database, id: UUID) -> HolderOfJob | None:
    """The holder of this job; None if it does not run."""
    rows = db.fetch(HOLDER, {"id": id})
    return HolderOfJob(*rows[0]) if rows else None


def see(db: Database) -> None:
    """Record that endpoints have their jobs, from whichever host; to be done before
    somebody asks which are late, and more often than ``LONGEST_UNSEEN``."""
    db.run(SEE)


def late(db: Database, grace: float) -> list[LateJob]:
    """Some of the jobs that are past their timeouts by so many seconds."""
    return [LateJob(*row) for row in db.fetch(LATE, {"grace": grace})]


def take_untold_cancels(db: Database, limit: int) -> list[UntoldCancel]:
    """Jobs whose endpoints are to be told that they are cancelled. Nobody else gets
    them from now on."""
    return [UntoldCancel(*row) for row in db.fetch(UNTOLD, {"limit": limit})]


class UnwrittenAnswers:
    """The answers to this process that are not written."""

    def __bool__(self) -> bool:
        return bool(endpoint_answers)

    def write(self, db: Database, worker: str) -> None:
        """Add them; if they cannot be, they stay. Raises StoreUnavailable."""
        if not (taken := endpoint_answers.take()):
            return
        try:
            add_answers(db, taken, worker)
        except StoreUnavailable:
            endpoint_answers.give_back(taken)
            raise


unwritten_answers: Final = UnwrittenAnswers()


def add_answers(db: Database, counts: Mapping[str, AnswerCount], worker: str) -> None:
    """Add what endpoints answered to this worker. Their rows are made if they are
    missing."""
    params = {"answers": json.dumps(_answer_rows(counts, worker))}
    written = {name for (name,) in db.fetch(ADD_ANSWERS, params)}
    if missing := {name: counts[name] for name in counts if name not in written}:
        declare_endpoints(db, list(missing))
        db.fetch(ADD_ANSWERS, {"answers": json.dumps(_answer_rows(missing, worker))})


def _answer_rows(
    counts: Mapping[str, AnswerCount], worker: str
) -> list[dict[str, object]]:
    now = time.monotonic()
    return [
        {
            "endpoint": endpoint,
            "answered": count.answers,
            "failed": count.failed,
            "last": _answer_row(count.last, worker, now),
            "last_failure": _answer_row(count.last_failure, worker, now),
        }
        for endpoint, count in counts.items()
    ]


def _answer_row(
    answer: EndpointAnswer | None, worker: str, now: float
) -> dict[str, Any] | None:
    if answer is None:
        return None
    row = {
        "class": answer.answer_class.value,
        "status": answer.status,
        "seconds": round(answer.seconds, 3),
        "problem": answer.problem,
        "worker": worker,
        "age": now - answer.ended,
    }
    return {key: value for key, value in row.items() if value not in (None, "")}


def summaries(db: Database) -> Sequence[tuple[Any, ...]]:
    """The endpoints, by name: the id of the row, the name, its number of jobs, seconds
    since the oldest was claimed; JSON, as ``add_answers`` writes it, and the seconds
    since 1970 by the clock of the database."""
    return db.fetch(SUMMARY)


HANDED_OVER: Final = gauge(
    "jobqueue_handed_over_jobs",
    "Running jobs that an endpoint has, and that hold no slot.",
    Label("endpoint"),
)
ANSWERS: Final = counter(
    "jobqueue_worker_endpoint_answers_total",
    "Requests with a job that this host sent to an endpoint, by the class of the "
    "answer, or what there was instead.",
    Label("endpoint", known=lambda: conf.endpoints),
    Label("answer", tuple(AnswerClass.values)),
)


def _samples(db: Database) -> Iterator[Sample]:
    for _id, name, jobs, *_answers in summaries(db):
        yield Sample(HANDED_OVER.name, jobs, (name,))


METRICS: Final = RoomMetrics(
    [HANDED_OVER], _samples, [ANSWERS], lambda: {ANSWERS.name: endpoint_answers.totals}
)
