"""Hand-over: an endpoint goes on with attempts, and they hold no slot any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.domain.policy import READABLE
from django_jobqueue.store.connection import Database
from django_jobqueue.store.prepared import array_of_ids, array_of_numbers
from django_jobqueue.store.queue.finish import Finished, Holder

# The fence stays: the callback has it. Whoever ended the attempt meanwhile has changed
# the worker, so a hand-over that comes after the callback finds nothing.
HAND_OVER: Final = """
WITH outcome AS MATERIALIZED (
  SELECT * FROM unnest(%(ids)s::uuid[], %(fences)s::bigint[], %(endpoints)s::text[])
                AS given (id, fence, endpoint)
   ORDER BY id
), accepted AS (
  UPDATE jobqueue_queuedjob AS job
     SET worker_id = worker.id
    FROM outcome
    JOIN jobqueue_worker AS worker
      ON worker.state = 'endpoint' AND worker.name = outcome.endpoint
   WHERE job.id = ANY (%(ids)s::uuid[]) AND job.id = outcome.id
     AND job.fence = outcome.fence AND job.worker_id = %(worker_id)s::bigint
     AND job.status = 'running'
  RETURNING job.id
)
SELECT id FROM outcome WHERE id NOT IN (SELECT id FROM accepted)
"""

# Its lease never lapses, so that no rescue takes its jobs; and it is in no state of a
# living worker, so that nobody counts on it.
DECLARE: Final = f"""
INSERT INTO jobqueue_worker (name, host, pid, state, lease_until)
SELECT name, '', 0, 'endpoint', '{READABLE[1]}'
  FROM unnest(%(names)s::text[]) AS given (name)
 WHERE NOT EXISTS (SELECT FROM jobqueue_worker AS worker
                    WHERE worker.state = 'endpoint' AND worker.name = given.name)
    ON CONFLICT DO NOTHING
"""


def declare_endpoints(db: Database, names: Sequence[str]) -> None:
    """Write the rows of these endpoints, if they are missing."""
    db.run(DECLARE, {"names": sorted(set(names))})


def hand_over(
    db: Database, holder: Holder, finished: Sequence[Finished], now: float
) -> set[UUID]:
    """Give these attempts to the endpoints that their outcomes name; return the ids of
    those whose fence was wrong."""
    names = [one.outcome.reason for one in finished]
    declare_endpoints(db, names)
    params = {
        "worker_id": holder.worker_id,
        "ids": array_of_ids([one.id for one in finished]),
        "fences": array_of_numbers([one.fence for one in finished]),
        "endpoints": names,
    }
    return {id for (id,) in db.fetch(HAND_OVER, params)}
