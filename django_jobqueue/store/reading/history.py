"""Reads past figures by job type, queue and span of time, from the roll-ups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
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

SPANS: Final = f"""
SELECT date_bin(%(step)s, bucket, %(since)s), {SUMS}
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY 1
 ORDER BY 1
"""

TRENDS: Final = """
SELECT job_type, queue, date_bin(%(step)s, bucket, %(since)s),
       sum(succeeded + failed)::bigint, sum(failed)::bigint
  FROM jobqueue_rollup
 WHERE bucket >= %(since)s
 GROUP BY 1, 2, 3
"""

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


def spans(db: Database, start: datetime, step: timedelta) -> list[Span]:
    """The figures since this time, by spans of this length; a span without a roll-up is
    missing."""
    return [Span(*row) for row in db.fetch(SPANS, {"since": start, "step": step})]


def trends(db: Database, start: datetime, step: timedelta) -> list[Finished]:
    """The finished jobs since this time, by job type, queue and spans of this
    length."""
    return [Finished(*row) for row in db.fetch(TRENDS, {"since": start, "step": step})]


def unfolded(db: Database) -> datetime | None:
    """A minute that should be part of a half hour for long: nobody folds."""
    for (bucket,) in db.fetch(UNFOLDED):
        return bucket  # type: ignore[no-any-return]
    return None
