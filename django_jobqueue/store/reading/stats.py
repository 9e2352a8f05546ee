"""Reads figures for people: depth, age, liveness, failures. Each count is limited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django_jobqueue.domain.histogram import BUCKETS, Times
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.lanes import scan
from django_jobqueue.text.json_reading import read_json

CAP: Final = 10_000  # a depth above this is shown as "10,000+"

_OF_LANE: Final = """jobqueue_queuedjob AS job
                  WHERE job.status = 'queued' AND NOT job.quarantined
                    AND job.queue = lane.queue AND job.priority = lane.priority
                    AND job.job_type = lane.job_type"""

# Capped counts lane by lane: 60 ms on a million queued rows, where one GROUP BY took
# 150. The moment is that of the statement, here and below: an index serves no condition
# on clock_timestamp(), which was 1.5 times as long.
DEPTH: Final = f"""
SELECT lane.queue, lane.priority, lane.job_type, ready.jobs, later.jobs, later.retrying,
       extract(epoch FROM statement_timestamp() - oldest.run_after)::float8
  FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(job_types)s::text[])
       AS lane (queue, priority, job_type),
       LATERAL (
         SELECT count(*) AS jobs
           FROM (SELECT FROM {_OF_LANE}
                    AND job.run_after <= statement_timestamp()
                  LIMIT {CAP + 1}) AS found) AS ready,
       LATERAL (
         SELECT count(*) AS jobs, count(*) FILTER (WHERE found.attempts > 0) AS retrying
           FROM (SELECT job.attempts FROM {_OF_LANE}
                    AND job.run_after > statement_timestamp()
                  LIMIT {CAP + 1}) AS found) AS later,
       LATERAL (
         SELECT min(first.run_after) AS run_after
           FROM (SELECT job.run_after FROM {_OF_LANE}
                    AND job.run_after <= statement_timestamp()
                  ORDER BY job.run_after, job.id
                  LIMIT 1) AS first) AS oldest
"""

# The same in one pass over a small table, whatever lanes there are: 100,000 rows in 440
# lanes took 20 ms, those of one type 3, and lane by lane all took 95.
SMALL: Final = 64 * 1024 * 1024  # bytes
SIZE: Final = "SELECT pg_relation_size('jobqueue_queuedjob')"
DEPTH_OF_SMALL: Final = f"""
SELECT queue, 0, job_type,
       least(count(*) FILTER (WHERE NOT is_later), {CAP + 1}),
       least(count(*) FILTER (WHERE is_later), {CAP + 1}),
       least(count(*) FILTER (WHERE is_later AND attempts > 0), {CAP + 1}),
       extract(epoch FROM statement_timestamp()
               - min(run_after) FILTER (WHERE NOT is_later))::float8
  FROM (SELECT queue, job_type, attempts, run_after,
               run_after > statement_timestamp() AS is_later
          FROM jobqueue_queuedjob
         WHERE status = 'queued' AND NOT quarantined
           AND (%(only)s::text IS NULL OR job_type = %(only)s)) AS waiting
 GROUP BY queue, job_type
"""

RUNNING: Final = """
SELECT queue, job_type, count(*) FROM jobqueue_queuedjob
 WHERE status = 'running'
 GROUP BY queue, job_type
"""

ALONE: Final = """
SELECT queue, job_type, count(*) FROM jobqueue_queuedjob
 WHERE status = 'queued' AND quarantined
 GROUP BY queue, job_type
"""

WORKERS: Final = """
SELECT id, name, state, queues::text, threads, async_slots, running, rss, listening,
       extract(epoch FROM statement_timestamp() - started_at)::float8,
       extract(epoch FROM lease_until - statement_timestamp())::float8, release, "end",
       remote
  FROM jobqueue_worker
 WHERE state IN ('running', 'draining')
    OR stopped_at > statement_timestamp() - interval '10 minutes'
 ORDER BY state IN ('running', 'draining') DESC, id
"""

PARKED_HOSTS: Final = """
SELECT count(*) FROM jobqueue_host
 WHERE state IN ('parked', 'draining') AND lease_until > statement_timestamp()
"""

# Most workers of a project know the same job types, perhaps thousands: each list is
# read once.
KNOWN: Final = """
SELECT job_types::text, array_agg(id)
  FROM jobqueue_worker
 WHERE id = ANY(%(ids)s)
 GROUP BY 1
"""

# The counters of several roll-ups, and their histograms place by place: 150 ms for both
# histograms of 33,000 roll-ups, and 4,000 with unnest() and a sum for each place.


def _summed(name: str) -> str:
    places = (f"coalesce(sum({name}[{n + 1}]), 0)" for n in range(BUCKETS))
    return f"ARRAY[{', '.join(places)}]"


SUMS: Final = f"""sum(succeeded)::bigint, sum(failed)::bigint,
       sum(retried)::bigint, sum(other)::bigint,
       {_summed("run_histogram")}, {_summed("wait_histogram")}"""

# From the roll-ups, never from the archive.
RECENT: Final = f"""
SELECT job_type, queue, {SUMS}
  FROM jobqueue_rollup
 WHERE bucket > statement_timestamp() - %(seconds)s * interval '1 second'
 GROUP BY job_type, queue
 ORDER BY job_type, queue
"""

MEAN_RUN_TIMES: Final = """
SELECT job_type, (sum(run_ms) / sum(succeeded + failed + retried) / 1000)::float8
  FROM jobqueue_rollup
 WHERE queue = %(queue)s
   AND bucket > statement_timestamp() - %(seconds)s * interval '1 second'
 GROUP BY job_type
HAVING sum(succeeded + failed + retried) > 0
"""

# A few minutes of the partial index on what did not succeed.
FAILURES: Final = f"""
SELECT failed.error_class, failed.job_type, count(*), max(failed.finished_at),
       (array_agg(failed.error_message ORDER BY failed.finished_at DESC))[1]
  FROM (SELECT error_class, job_type, finished_at, error_message
          FROM jobqueue_archivedjob
         WHERE status = 'failed'
           AND finished_at > statement_timestamp() - %(seconds)s * interval '1 second'
         ORDER BY finished_at DESC, id DESC
         LIMIT {CAP}) AS failed
 GROUP BY failed.error_class, failed.job_type
 ORDER BY count(*) DESC, failed.error_class
 LIMIT 20
"""

_IS_PAUSED = "(paused AND (resume_at IS NULL OR resume_at > statement_timestamp()))"
PAUSED: Final = f"""
SELECT 'job type', name, paused_by, paused_reason, paused_at, resume_at
  FROM jobqueue_jobtype
 WHERE {_IS_PAUSED}
UNION ALL
SELECT 'queue', name, paused_by, paused_reason, paused_at, resume_at
  FROM jobqueue_queue
 WHERE {_IS_PAUSED}
 ORDER BY 1, 2
"""

WITHOUT_SLOTS: Final = f"""
SELECT name FROM jobqueue_jobtype
 WHERE coalesce(concurrency_override, concurrency) = 0 AND NOT {_IS_PAUSED}
 ORDER BY name
"""


@dataclass(slots=True)
class Depth:
    """The waiting and running jobs of one type in one queue, counted up to ``CAP``."""

    queue: str
    job_type: str
    ready: int = 0
    later: int = 0  # waiting for their time, retries included
    retrying: int = 0
    running: int = 0
    oldest: float | None = None  # seconds that the oldest ready job has waited


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as its row says."""

    id: int
    name: str
    state: str
    queues: list[str] | None
    threads: int
    async_slots: int
    running: int
    rss: int  # bytes
    listening: bool
    age: float  # seconds
    lease: float  # seconds left; negative: lapsed
    release: str
    end: str
    is_remote: bool = False


@dataclass(frozen=True, slots=True)
class Recent(Times):
    """The recent figures of one job type in one queue."""

    job_type: str
    queue: str
    succeeded: int
    failed: int
    retried: int
    other: int
    run: list[int]  # histograms, see django_jobqueue.domain.histogram
    wait: list[int]


@dataclass(frozen=True, slots=True)
class FailureCount:
    """The number of failed jobs of one type with one exception."""

    error_class: str
    job_type: str
    count: int
    last: datetime  # datetime
    message: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A job type or queue that is not claimed, since when and until when."""

    what: str  # job type, or queue
    name: str
    by: str
    reason: str
    since: datetime | None = None
    until: datetime | None = None


def depths(db: Database, only: str | None = None) -> list[Depth]:
    """The waiting and running jobs, by queue and job type: of all types, or only of the
    given one."""
    by_place: dict[tuple[str, str], Depth] = {}

    def depth(queue: str, job_type: str) -> Depth:
        return by_place.setdefault((queue, job_type), Depth(queue, job_type))

    for queue, _priority, job_type, *counts, oldest in _waiting(db, only):
        one = depth(queue, job_type)
        one.ready += counts[0]
        one.later += counts[1]
        one.retrying += counts[2]
        if oldest is not None:
            one.oldest = max(one.oldest or 0.0, oldest)
    for queue, job_type, count in db.fetch(ALONE):
        depth(queue, job_type).ready += count
    for queue, job_type, count in db.fetch(RUNNING):
        depth(queue, job_type).running += count
    places = sorted(place for place in by_place if only in (None, place[1]))
    return [by_place[place] for place in places]


def workers(db: Database) -> list[WorkerRow]:
    """Living workers, and those that ended in the last ten minutes."""
    return [
        WorkerRow(id, name, state, read_json(queues) if queues else None, *columns)
        for id, name, state, queues, *columns in db.fetch(WORKERS)
    ]


def known_job_types(db: Database, ids: Sequence[int]) -> dict[int, frozenset[str]]:
    """The job types that each of these workers has handlers for."""
    known: dict[int, frozenset[str]] = {}
    for text, same in db.fetch(KNOWN, {"ids": list(ids)}):
        known.update(dict.fromkeys(same, frozenset(read_json(text) or ())))
    return known


def parked_hosts(db: Database) -> int:
    """How many living hosts operators have parked or drained."""
    ((count,),) = db.fetch(PARKED_HOSTS)
    return int(count)


def recent(db: Database, seconds: float) -> list[Recent]:
    """The figures of the last ``seconds``, to the minute."""
    return [Recent(*row) for row in db.fetch(RECENT, {"seconds": seconds})]


def mean_run_times(db: Database, queue: str, seconds: float) -> dict[str, float]:
    """The mean seconds of an attempt in this queue, by job type, in the last
    ``seconds``."""
    return dict(db.fetch(MEAN_RUN_TIMES, {"queue": queue, "seconds": seconds}))


def failures(db: Database, seconds: float) -> list[FailureCount]:
    """The commonest failures of the last ``seconds``."""
    return [FailureCount(*row) for row in db.fetch(FAILURES, {"seconds": seconds})]


def paused(db: Database) -> list[Pause]:
    """Job types and queues that are paused."""
    return [Pause(*row) for row in db.fetch(PAUSED)]


def without_slots(db: Database) -> list[str]:
    """Job types that a concurrency of 0 keeps from being claimed, without a pause."""
    return [name for (name,) in db.fetch(WITHOUT_SLOTS)]


def _waiting(db: Database, only: str | None) -> list[tuple[Any, ...]]:
    ((size,),) = db.fetch(SIZE)
    if size <= SMALL:
        return db.fetch(DEPTH_OF_SMALL, {"only": only})
    lanes = [head.lane for head in scan(db, [])]
    lanes = [lane for lane in lanes if only in (None, lane.job_type)]
    params = {
        "queues": [lane.queue for lane in lanes],
        "priorities": [lane.priority for lane in lanes],
        "job_types": [lane.job_type for lane in lanes],
    }
    return db.fetch(DEPTH, params) if lanes else []
