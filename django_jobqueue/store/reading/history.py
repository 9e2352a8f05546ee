"""Reads past figures by job type, queue and span of time, from the roll-ups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django_jobqueue.domain.histogram import Times
from django_jobqueue.store.connection import Database
from django_jobqueue.store.reading.stats import SUMS, Recent
from django_jobqueue.store.rollup import EPOCH

SINCE: Final = f"""
SELECT job_type, queue, {SUMS}
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY job_type, queue
 ORDER BY job_type, queue
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

TRENDS: Final = """
SELECT job_type, queue, date_bin(%(step)s, bucket, %(since)s),
       sum(succeeded + failed)::bigint, sum(failed)::bigint
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY 1, 2, 3
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


@dataclass(frozen=True, slots=True)
class Finished:
    """The numbers of jobs of a type in a queue that succeeded and failed in one span of
    time."""

    job_type: str
    queue: str
    start: datetime
    finished: int
    failed: int


def since(db: Database, start: datetime) -> list[Recent]:
    """The figures since this time, by job type and queue."""
    return [Recent(*row) for row in db.fetch(SINCE, {"since": start})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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


@dataclass(frozen=True, slots=True)
class ReleaseSpan:
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


def trends(db: Database, start: datetime, step: timedelta) -> list[Finished]:
    """The finished jobs since this time, by job type, queue and spans of this
    length."""
    return [Finished(*row) for row in db.fetch(TRENDS, {"since": start, "step": step})]


def unfolded(db: Database) -> datetime | None:
    """A minute that should be part of a half hour for long: nobody folds."""
    for (bucket,) in db.fetch(UNFOLDED):
        return bucket  # type: ignore[no-any-return]
    return None
