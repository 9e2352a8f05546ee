"""Replay: an archived job → a new queued one that remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django_jobqueue.domain.states import ReplayExpiry
from django_jobqueue.store.connection import Database

# Only inserts, so it is easy to undo; the old rows are not touched. A job whose type is
# gone has no row to join and is left out. The new jobs are due in the order of the old
# ones, a microsecond apart: ids alone do not keep it before PostgreSQL 18. The first
# of each queue is announced.
REPLAY: Final = """
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, expires_at, max_attempts,
       replay_of, root_id, bulk_operation_id, enqueued_by, tags,
       metadata, on_complete, announce)
SELECT jobqueue_uuidv7(), old.job_type, coalesce(%(queue)s, old.queue),
       coalesce(%(priority)s, old.priority), coalesce(%(data)s::jsonb, old.data),
       due.at,
       CASE %(expiry)s
            WHEN 'keep' THEN old.expires_at
            WHEN 'none' THEN NULL
            WHEN 'same' THEN due.at + (old.expires_at - old.created_at)
            ELSE %(expires_at)s::timestamptz END,
       coalesce(%(max_attempts)s, old.max_attempts), old.id,
       coalesce(old.root_id, old.id), %(bulk_operation_id)s::uuid, %(by)s, old.tags,
       old.metadata, old.on_complete, old.in_queue = 1
  FROM (SELECT archived.*, row_number() OVER (ORDER BY id) AS place,
               row_number() OVER (PARTITION BY archived.queue ORDER BY id) AS in_queue
          FROM jobqueue_archivedjob AS archived
          JOIN jobqueue_jobtype AS type ON type.name = archived.job_type
         WHERE id = ANY (%(ids)s::uuid[])) AS old,
       LATERAL (SELECT coalesce(
                  %(run_after)s::timestamptz,
                  statement_timestamp() + old.place * interval '1 microsecond'))
       AS due (at)
 ORDER BY old.id
RETURNING replay_of, id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Options of a replay. None keeps the value of the archived job."""

    run_after: datetime | None = None  # None is now
    queue: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    data: str | None = None  # JSON text
    # keep: the old moment, so that an expired job expires again; same: the same time to
    # live, from now; none: never; new: expires_at.
    expiry: str = ReplayExpiry.KEEP
    expires_at: datetime | None = None
    by: str | None = None
    bulk_operation_id: UUID | None = None


def replay(db: Database, ids: Sequence[UUID], how: Replay) -> dict[UUID, UUID]:
    """Enqueue these archived jobs again; return the new id of each that could be."""
    params = {name: getattr(how, name) for name in how.__slots__}
    rows = db.fetch(REPLAY, {**params, "ids": list(ids)})
    return dict(rows)
