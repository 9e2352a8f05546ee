"""Release: running → queued with the attempt given back, for jobs that never
started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database

RELEASE: Final = """
UPDATE jobqueue_queuedjob AS job
   SET status = 'queued', worker_id = NULL, started_at = NULL,
       attempts = job.attempts - 1
  FROM unnest(%(ids)s::uuid[], %(fences)s::bigint[]) AS held (id, fence)
 WHERE job.id = held.id AND job.fence = held.fence AND job.worker_id = %(worker)s
RETURNING job.id, pg_notify('jobqueue', 'b:' || job.queue)
"""

# After a claim whose answer was lost: rows that carry our name, and that we do not
# have.
RECOVER: Final = """
UPDATE jobqueue_queuedjob AS job
   SET status = 'queued', worker_id = NULL, started_at = NULL,
       attempts = job.attempts - 1
 WHERE job.status = 'running' AND job.worker_id = %(worker)s
   AND job.id <> ALL (%(held)s::uuid[])
RETURNING job.id, pg_notify('jobqueue', 'b:' || job.queue)
"""


def release(
    db: Database, worker: int, ids: Sequence[UUID], fences: Sequence[int]
) -> int:
    """Give back claimed jobs that were not started; return how many were still ours."""
    params = {"worker": worker, "ids": list(ids), "fences": list(fences)}
    return len(db.fetch(RELEASE, params))


def recover(db: Database, worker: int, held: Sequence[UUID]) -> int:
    """Give back whatever this worker has claimed but for ``held``; return how many."""
    return len(db.fetch(RECOVER, {"worker": worker, "held": list(held)}))
