"""Marks jobs that somebody waits for: only their ends are notified."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database

# The trigger jobqueue_notify_end looks at it when the row leaves the queue.
AWAIT: Final = """
UPDATE jobqueue_queuedjob SET awaited = true WHERE id = %(id)s RETURNING id
"""


def mark(db: Database, id: UUID) -> bool:
    """Ask to be notified when this job is over; False if it is not in the queue."""
    return bool(db.fetch(AWAIT, {"id": id}))
