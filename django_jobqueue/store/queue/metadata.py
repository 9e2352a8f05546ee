"""Writes the metadata of a running job, with the fence."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import Database

# By the primary key. A rescued job has another fence from its next claim on, and no
# worker until then.
SAVE: Final = """
UPDATE jobqueue_queuedjob
   SET metadata = %(metadata)s::jsonb
 WHERE id = %(id)s AND fence = %(fence)s AND worker_id IS NOT NULL
RETURNING id
"""


def save(db: Database, id: UUID, fence: int, metadata: str) -> bool:
    """Write this JSON text; False if the job is not this claim's any more."""
    params = {"id": id, "fence": fence, "metadata": metadata}
    return bool(db.fetch(SAVE, params))
