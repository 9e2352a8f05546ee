"""Whether any job is left that a host would run, now or later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django_jobqueue.store.connection import Database

REMAINING: Final = """
SELECT EXISTS (
  SELECT FROM jobqueue_queuedjob
   WHERE job_type = ANY (%(job_types)s::text[])
     AND (%(queues)s::text[] IS NULL OR queue = ANY (%(queues)s::text[])))
"""


def any_remaining(
    db: Database, job_types: Sequence[str], queues: Sequence[str] | None
) -> bool:
    """True if a job of these types and queues waits, is to be retried, or runs
    anywhere. Raises StoreUnavailable."""
    among = None if queues is None else list(queues)
    rows = db.fetch(REMAINING, {"job_types": list(job_types), "queues": among})
    return bool(rows[0][0])
