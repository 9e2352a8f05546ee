"""Counts the jobs that a claim takes before others of their lane."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.rows import Lane

# A part of the index that claims read, or of that by key, and only as far as ``most``.
JOBS_BEFORE: Final = """
SELECT given.id,
       CASE WHEN given.limit_key IS NULL THEN
       (SELECT count(*)
          FROM (SELECT FROM jobqueue_queuedjob AS other
                 WHERE other.status = 'queued' AND NOT other.quarantined
                   AND other.queue = given.queue AND other.priority = given.priority
                   AND other.job_type = given.job_type
                   AND (other.run_after, other.id) < (given.run_after, given.id)
                 LIMIT %(most)s) AS few)
       ELSE
       (SELECT count(*)
          FROM (SELECT FROM jobqueue_queuedjob AS other
                 WHERE other.status = 'queued' AND NOT other.quarantined
                   AND other.queue = given.queue AND other.priority = given.priority
                   AND other.job_type = given.job_type
                   AND other.limit_key >= given.limit_key
                   AND other.limit_key <= given.limit_key
                   AND (other.run_after, other.id) < (given.run_after, given.id)
                 ORDER BY other.limit_key, other.run_after, other.id
                 LIMIT %(most)s) AS few)
       END
  FROM unnest(%(ids)s::uuid[], %(queues)s::text[], %(priorities)s::smallint[],
              %(job_types)s::text[], %(times)s::timestamptz[],
              %(limit_keys)s::text[])
       AS given (id, queue, priority, job_type, run_after, limit_key)
"""


class Place(NamedTuple):
    """Where a job waits."""

    id: UUID
    lane: Lane
    run_after: datetime
    limit_key: str | None = None


def count_before(db: Database, places: Sequence[Place], most: int) -> dict[UUID, int]:
    """The number of jobs before each of these in its lane, or of its key there if it
    has one, counted up to ``most``."""
    params = {
        "most": most,
        "ids": [place.id for place in places],
        "queues": [place.lane.queue for place in places],
        "priorities": [place.lane.priority for place in places],
        "job_types": [place.lane.job_type for place in places],
        "times": [place.run_after for place in places],
        "limit_keys": [place.limit_key for place in places],
    }
    return dict(db.fetch(JOBS_BEFORE, params))
