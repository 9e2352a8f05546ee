"""Reads past figures by job type, queue and span of time, from the roll-ups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django_jobqueue.domain.histogram import BUCKETS, Times
from django_jobqueue.store.connection import Database
from django_jobqueue.store.reading.stats import SUMS, Recent
from django_jobqueue.store.rollup_folding import EPOCH

# Histograms cost ten times as much as numbers: they are read of the job types that are
# shown, numbers of all.
SINCE: Final = f"""
SELECT job_type, queue, {SUMS}
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s AND job_type = ANY(%(job_types)s)
 GROUP BY job_type, queue
 ORDER BY job_type, queue
"""

_COUNTS: Final = """sum(succeeded)::bigint, sum(failed)::bigint,
       sum(retried)::bigint, sum(other)::bigint"""
COUNTS: Final = f"""
SELECT job_type, queue, {_COUNTS}
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY job_type, queue
"""

_OF: Final = """(%(job_type)s::text IS NULL OR job_type = %(job_type)s)
   AND (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(release)s::text IS NULL OR release = %(release)s)"""
SPANS: Final = f"""
SELECT date_bin(%(step)s, bucket, %(since)s), {SUMS}
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s AND bucket < %(until)s
   AND {_OF}
 GROUP BY 1
 ORDER BY 1
"""


def _places(name: str) -> str:
    """A column for each place of a histogram."""
    places = (f"sum({name}_histogram[{n + 1}]) AS {name}_{n}" for n in range(BUCKETS))
    return ", ".join(places)


def _added(name: str) -> str:
    places = (f"coalesce(sum({name}_{n}), 0)::bigint" for n in range(BUCKETS))
    return f"ARRAY[{', '.join(places)}]"


_PARTS: Final = f"""sum(succeeded) AS succeeded, sum(failed) AS failed,
         sum(retried) AS retried, sum(other) AS other, {_places("run")},
         {_places("wait")}"""
_TIMES: Final = f"{_added('run')}, {_added('wait')}"

# By spans of time, by queues, and by both: each histogram is taken apart once, and the
# roll-ups are read once.
SPANS_AND_QUEUES: Final = f"""
WITH part AS MATERIALIZED (
  SELECT date_bin(%(step)s, bucket, %(since)s) AS start,
         CASE WHEN queue = ANY(%(queues)s) THEN queue END AS queue, {_PARTS}
    FROM jobqueue_rollup
   WHERE bucket >= %(since)s
   GROUP BY 1, 2)
(SELECT NULL::timestamptz, start, queue, {_COUNTS}, {_TIMES}
   FROM part
  GROUP BY GROUPING SETS ((start), (queue))
  ORDER BY start, queue)
UNION ALL
SELECT date_bin(%(trend_step)s, start, %(since)s), NULL, queue, {_COUNTS}, NULL, NULL
  FROM part
 WHERE queue IS NOT NULL
 GROUP BY 1, 3
"""

# The same of job types.
TYPES: Final = f"""
WITH part AS MATERIALIZED (
  SELECT job_type, date_bin(%(trend_step)s, bucket, %(since)s) AS start, {_PARTS}
    FROM jobqueue_rollup
   WHERE bucket >= %(since)s AND job_type = ANY(%(job_types)s)
   GROUP BY 1, 2)
SELECT NULL::timestamptz, job_type, {_COUNTS}, {_TIMES}
  FROM part
 GROUP BY job_type
UNION ALL
SELECT start, job_type, succeeded, failed, retried, other, NULL, NULL
  FROM part
"""

# Each release, and when it first and last counted something; the latest ones first.
RELEASES: Final = f"""
SELECT release, min(bucket), max(bucket)
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s AND release <> '' AND {_OF}
 GROUP BY release
 ORDER BY min(bucket) DESC, release DESC
 LIMIT %(most)s
"""

OF_RELEASE: Final = f"""
SELECT job_type, '', {SUMS}
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s AND release = %(release)s
 GROUP BY job_type
 ORDER BY job_type
"""

COMMONEST: Final = """
SELECT job_type
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY job_type
 ORDER BY sum(succeeded + failed) DESC, job_type
 LIMIT %(most)s
"""

FAILING: Final = """
SELECT job_type, queue, sum(succeeded + failed)::bigint, sum(failed)::bigint
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY GROUPING SETS ((job_type), (queue), ())
HAVING sum(succeeded + failed) >= %(least)s
   AND 100 * sum(failed) > %(percent)s * sum(succeeded + failed)
 ORDER BY job_type, queue
"""

FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)

# The first minute that a pruner should have folded an hour ago, if it is there.
UNFOLDED: Final = f"""
SELECT bucket
  FROM jobqueue_rollup
 WHERE bucket > statement_timestamp() - interval '1 day'
   AND bucket < statement_timestamp() - interval '3 hours'
   AND bucket <> date_bin('30 minutes', bucket, {EPOCH})
 ORDER BY bucket
 LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Span(Times):
    """The figures of one span of time, all job types together."""

    start: datetime
    succeeded: int
    failed: int
    retried: int
    other: int
    run: list[int]  # histograms, see django_jobqueue.domain.histogram
    wait: list[int]


class Finished(NamedTuple):
    """The numbers of jobs of a type, or of a queue, that succeeded and failed in one
    span of time."""

    name: str
    start: datetime
    finished: int
    failed: int


@dataclass(slots=True)
class Counts:
    """How many jobs ended in which way, and how many attempts were retried."""

    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    other: int = 0

    @property
    def finished(self) -> int:
        """Jobs that succeeded or failed for good."""
        return self.succeeded + self.failed

    @property
    def failed_share(self) -> float | None:
        """The share of finished jobs that failed (0…1); None if none finished."""
        return self.failed / self.finished if self.finished else None

    def add(self, other: Counts) -> None:
        """Count these, too."""
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.retried += other.retried
        self.other += other.other


@dataclass(slots=True)
class Failing:
    """Where too many jobs fail."""

    types: dict[str, Counts]
    queues: dict[str, Counts]
    all: Counts | None  # of everything together; None: not too many


def since(db: Database, start: datetime, job_types: Sequence[str]) -> list[Recent]:
    """The figures of these job types since this time, by job type and queue."""
    params = {"since": start, "job_types": list(job_types)}
    return [Recent(*row) for row in db.fetch(SINCE, params)]


def counts(db: Database, start: datetime) -> dict[tuple[str, str], Counts]:
    """The numbers of all jobs since this time, by job type and queue."""
    rows = db.fetch(COUNTS, {"since": start})
    return {(job_type, queue): Counts(*row) for job_type, queue, *row in rows}


class Part(NamedTuple):
    """A part of all jobs: what is None is not asked for."""

    job_type: str | None = None
    queue: str | None = None
    release: str | None = None

    def params(self) -> dict[str, str | None]:
        """As the statements take it."""
        return {
            "job_type": self.job_type,
            "queue": self.queue,
            "release": self.release,
        }


EVERYTHING: Final = Part()


class ReleaseSpan(NamedTuple):
    """When workers of a release first and last counted something."""

    release: str
    first: datetime
    last: datetime


def spans(
    db: Database,
    start: datetime,
    step: timedelta,
    *,
    part: Part = EVERYTHING,
    end: datetime | None = None,
) -> list[Span]:
    """The figures from this time on, until the end if one is given, by spans of this
    length; a span without a roll-up is missing."""
    params = {"since": start, "until": end or FOREVER, "step": step, **part.params()}
    return [Span(*row) for row in db.fetch(SPANS, params)]


def releases(
    db: Database, start: datetime, *, part: Part = EVERYTHING, most: int = 20
) -> list[ReleaseSpan]:
    """The releases that counted something since this time, the newest first."""
    params = {"since": start, "most": most, **part.params()}
    return [ReleaseSpan(*row) for row in db.fetch(RELEASES, params)]


def of_release(db: Database, release: str, start: datetime) -> list[Recent]:
    """The figures of the workers of a release since this time, by job type."""
    params = {"since": start, "release": release}
    return [Recent(*row) for row in db.fetch(OF_RELEASE, params)]


def spans_and_queues(
    db: Database,
    start: datetime,
    step: timedelta,
    queues: Sequence[str],
    trend_step: timedelta,
) -> tuple[list[Span], list[Recent], list[Finished]]:
    """The figures since this time: by spans of this length; of these queues; and what
    each of them finished, by spans of ``trend_step``, a multiple of the other."""
    params = {
        "since": start,
        "step": step,
        "trend_step": trend_step,
        "queues": list(queues),
    }
    by_span, by_queue, trends = [], [], []
    for trend, span, queue, *row in db.fetch(SPANS_AND_QUEUES, params):
        if trend is not None:
            trends.append(_finished(queue, trend, row))
        elif span is not None:
            by_span.append(Span(span, *row))
        elif queue is not None:
            by_queue.append(Recent("", queue, *row))
    return by_span, by_queue, trends


def types(
    db: Database, start: datetime, job_types: Sequence[str], trend_step: timedelta
) -> tuple[list[Recent], list[Finished]]:
    """The figures of these job types since this time, of all queues together; and what
    each of them finished, by spans of ``trend_step``."""
    params = {
        "since": start,
        "trend_step": trend_step,
        "job_types": list(job_types),
    }
    by_type, trends = [], []
    for trend, job_type, *row in db.fetch(TYPES, params):
        if trend is not None:
            trends.append(_finished(job_type, trend, row))
        else:
            by_type.append(Recent(job_type, "", *row))
    return by_type, trends


def _finished(name: str, start: datetime, row: Sequence[int]) -> Finished:
    succeeded, failed = row[:2]
    return Finished(name, start, succeeded + failed, failed)


def commonest_types(db: Database, start: datetime, most: int) -> list[str]:
    """The job types that finished most jobs since this time."""
    rows = db.fetch(COMMONEST, {"since": start, "most": most})
    return [job_type for (job_type,) in rows]


def failing(db: Database, start: datetime, *, least: int, percent: float) -> Failing:
    """The job types and queues of which so many jobs finished since this time, and more
    than this share of them failed."""
    params = {"since": start, "least": least, "percent": percent}
    where = Failing({}, {}, None)
    for job_type, queue, finished, failed in db.fetch(FAILING, params):
        counts = Counts(succeeded=finished - failed, failed=failed)
        if job_type is not None:
            where.types[job_type] = counts
        elif queue is not None:
            where.queues[queue] = counts
        else:
            where.all = counts
    return where


def unfolded(db: Database) -> datetime | None:
    """A minute that should be part of a half hour for long: nobody folds."""
    for (bucket,) in db.fetch(UNFOLDED):
        return bucket  # type: ignore[no-any-return]
    return None
