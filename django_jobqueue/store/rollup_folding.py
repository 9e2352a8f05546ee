"""Folds the roll-ups of minutes into hours and days, and deletes old ones."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store import totals
from django_jobqueue.store.connection import Database
from django_jobqueue.store.rollup import ADDED

_SUM_OF_ALL = """(
         SELECT coalesce(array_agg(place.total ORDER BY place.n), '{{}}')
           FROM (SELECT item.n, sum(item.count::integer)::integer AS total
                   FROM jsonb_array_elements({name}) AS part (histogram),
                        jsonb_array_elements_text(part.histogram)
                        WITH ORDINALITY AS item (count, n)
                  GROUP BY item.n) AS place)"""
EPOCH: Final = "'2000-01-01 00:00Z'::timestamptz"  # where buckets of any width begin
FOLD: Final = f"""
WITH old AS (
  DELETE FROM jobqueue_rollup
   WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM jobqueue_rollup
            WHERE bucket < date_bin(%(width)s::interval,
                    clock_timestamp() - %(age)s::interval, {EPOCH})
              AND bucket >= date_bin('1 hour',
                    clock_timestamp() - %(oldest)s::interval, {EPOCH})
              AND bucket <> date_bin(%(width)s::interval, bucket, {EPOCH})
            ORDER BY bucket, job_type, queue, release
            LIMIT 1000
              FOR UPDATE SKIP LOCKED))
  RETURNING date_bin(%(width)s::interval, bucket, {EPOCH}) AS start, job_type, queue,
            release, succeeded, failed, retried, other, run_ms, wait_ms, run_histogram,
            wait_histogram
), summed AS (
  SELECT start, job_type, queue, release, sum(succeeded) AS succeeded,
         sum(failed) AS failed, sum(retried) AS retried, sum(other) AS other,
         least({totals.MOST}, sum(run_ms)) AS run_ms,
         least({totals.MOST}, sum(wait_ms)) AS wait_ms,
         jsonb_agg(run_histogram) AS runs, jsonb_agg(wait_histogram) AS waits
    FROM old
   GROUP BY start, job_type, queue, release
)
INSERT INTO jobqueue_rollup AS held (
       bucket, job_type, queue, release, succeeded, failed, retried, other, run_ms,
       wait_ms, run_histogram, wait_histogram)
SELECT start, job_type, queue, release, succeeded, failed, retried, other, run_ms,
       wait_ms, {_SUM_OF_ALL.format(name="runs")}, {_SUM_OF_ALL.format(name="waits")}
  FROM summed
 ORDER BY start, job_type, queue, release
    ON CONFLICT (bucket, job_type, queue, release) DO UPDATE {ADDED}
RETURNING bucket
"""

# What is older than the age is folded into buckets of the width. So a week in which 50
# job types were always busy is 14,400 rows. Charts show hours of two weeks, a week and
# the one before, and days of what is older: a month is read in two thirds of the time
# that it took in hours. The ages do not overlap: two that fold at once would else wait
# for each other's rows in a ring. Hours that nobody folded in time stay hours.
WIDTHS: Final = (
    {"width": "30 minutes", "age": "1 hour", "oldest": "2 days"},
    {"width": "1 hour", "age": "2 days", "oldest": "16 days"},
    {"width": "1 day", "age": "16 days", "oldest": "60 days"},
)

DROP: Final = """
DELETE FROM jobqueue_rollup WHERE bucket < statement_timestamp() - interval '400 days'
"""


def fold(db: Database) -> bool:
    """Fold minutes into half hours, hours and days; True if there may be more."""
    return any(bool(db.fetch(FOLD, width)) for width in WIDTHS)


def drop(db: Database) -> None:
    """Delete roll-ups older than 400 days."""
    db.run(DROP)
