"""Stores hourly counts of failures: workers and rescuers add, the pruner deletes old
ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final
from uuid import UUID

from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.store.connection import Database

BATCH: Final = 10_000

# The roll-up in key order, so that two workers never wait for each other in a ring. The
# groups are written at most once in ten seconds, however many workers fail, and whoever
# holds one is not waited for: it is an operator, or a worker that writes the same.
ADD: Final = """
WITH counted AS MATERIALIZED (
  SELECT known.fingerprint, given.job_type, given.release,
         sum(given.failed) AS failed, sum(given.retried) AS retried
    FROM jsonb_to_recordset(%(counts)s::jsonb) AS given (
           fingerprint uuid, coarse uuid, job_type text, release text,
           failed integer, retried integer)
   CROSS JOIN LATERAL (
           SELECT held.fingerprint
             FROM jobqueue_failuregroup AS held
            WHERE held.fingerprint IN (given.fingerprint, given.coarse)
            ORDER BY held.fingerprint = given.fingerprint DESC
            LIMIT 1) AS known
   GROUP BY known.fingerprint, given.job_type, given.release
), seen AS (
  UPDATE jobqueue_failuregroup AS held
     SET last_seen = clock_timestamp()
   WHERE held.fingerprint = ANY (ARRAY(
           SELECT older.fingerprint
             FROM jobqueue_failuregroup AS older
            WHERE older.fingerprint IN (SELECT fingerprint FROM counted)
              AND older.last_seen < clock_timestamp() - interval '10 seconds'
            ORDER BY older.fingerprint
              FOR UPDATE SKIP LOCKED))
)
INSERT INTO jobqueue_failurerollup AS held (
       fingerprint, bucket, job_type, release, failed, retried)
SELECT fingerprint, date_trunc('hour', clock_timestamp(), 'UTC'), job_type, release,
       failed, retried
  FROM counted
 ORDER BY fingerprint, job_type COLLATE "C", release COLLATE "C"
    ON CONFLICT (fingerprint, bucket, job_type, release) DO UPDATE
   SET failed = held.failed + excluded.failed,
       retried = held.retried + excluded.retried
"""

DROP: Final = """
DELETE FROM jobqueue_failurerollup
 WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM jobqueue_failurerollup
          WHERE bucket < clock_timestamp() - interval '90 days'
          LIMIT %(batch)s
            FOR UPDATE SKIP LOCKED))
RETURNING bucket
"""


@dataclass(slots=True)
class FailureCount:
    """The number of failures of a job type with a fingerprint since the last write.

    Where too many messages came from one place, the group is that of the coarse
    fingerprint.
    """

    fingerprint: UUID
    coarse: UUID
    job_type: str
    release: str  # of the worker
    failed: int = 0  # the attempt ended the job
    retried: int = 0

    @classmethod
    def of(cls, mark: Fingerprint, job_type: str, release: str) -> FailureCount:
        """Nothing counted yet."""
        return cls(mark.value, mark.coarse, job_type, release)


def add(db: Database, counts: Iterable[FailureCount]) -> None:
    """Add these counts to the current hour; their groups were seen just now."""
    rows = json.dumps([asdict(count) for count in counts], default=str)
    db.run(ADD, {"counts": rows})


def drop(db: Database) -> bool:
    """Delete some roll-ups older than 90 days; True if there may be more."""
    return len(db.fetch(DROP, {"batch": BATCH})) == BATCH
