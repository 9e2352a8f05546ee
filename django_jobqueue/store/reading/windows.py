"""Reads the figures of one job type in the last hour, day and week, from the
roll-ups."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.reading.stats import SUMS, Recent

HOUR: Final = 3_600
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
LENGTHS: Final = (HOUR, DAY, WEEK)  # seconds

# Each roll-up is read once, for the shortest window that it is in.
OF_JOB_TYPE: Final = f"""
SELECT CASE WHEN bucket > statement_timestamp() - interval '1 hour' THEN {HOUR}
            WHEN bucket > statement_timestamp() - interval '1 day' THEN {DAY}
            ELSE {WEEK} END AS seconds,
       job_type, '', {SUMS}
  FROM jobqueue_rollup
 WHERE bucket > statement_timestamp() - interval '7 days'
   AND job_type = %(job_type)s
 GROUP BY seconds, job_type
"""


def of_job_type(db: Database, job_type: str) -> list[tuple[int, Recent]]:
    """Each event in the shortest of ``LENGTHS`` that it is in: none is missing, and
    none there twice."""
    return [
        (seconds, Recent(*row))
        for seconds, *row in db.fetch(OF_JOB_TYPE, {"job_type": job_type})
    ]
