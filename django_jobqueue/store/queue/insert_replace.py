"""Enqueue, or give the waiting job with the same unique key the new data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.notify import (
    ISOLATION,
    NOTIFIED,
    announced,
    announces,
    is_quarantined,
)
from django_jobqueue.store.queue.insert import INSERT, Inserted, NewJob, inserted_job

# The row is locked: either the claim wins, and frees the key, or the new data do. The
# expiry is the new call's; counted from when the job is due, if that stays later. A
# debounced job is due at its limit at the latest, so the last call before it wins.
REPLACE: Final = """
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO UPDATE
   SET data = excluded.data, metadata = excluded.metadata, tags = excluded.tags,
       enqueued_by = excluded.enqueued_by,
       run_after = CASE WHEN %(moves)s::boolean
                        THEN least(excluded.run_after, jobqueue_queuedjob.created_at
                                                       + %(debounce_max)s::interval)
                        ELSE jobqueue_queuedjob.run_after END,
       expires_at = CASE WHEN %(moves)s::boolean
                           OR %(has_expiry)s::boolean
                         THEN excluded.expires_at
                         ELSE excluded.expires_at
                              + greatest(interval '0', jobqueue_queuedjob.run_after
                                                       - excluded.run_after) END
 WHERE jobqueue_queuedjob.status = 'queued'
"""

# A claim skips the row while it is locked, and may have passed it by then. The subquery
# reads the row before this statement. A job that only moves away is no news.
PASSED: Final = """
       CASE WHEN id <> {id} AND (run_after <= clock_timestamp() OR run_after < (
                   SELECT before.run_after FROM jobqueue_queuedjob AS before
                    WHERE before.id = jobqueue_queuedjob.id))
            THEN pg_notify('jobqueue', 'b:' || queue)::text END
"""

INSERT_OR_REPLACE: Final = INSERT.replace("{conflict}", REPLACE).replace(
    "{notified}",
    "id, max_attempts, CASE WHEN id = %(id)s::uuid THEN {notified}::text END,"
    + PASSED.format(id="%(id)s::uuid"),
)


def insert_or_replace(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job, or replace the data of the waiting one that has its unique key;
    None if that one runs, or if there is no such job type."""
    is_first = announces(db, new.lane)
    statement = INSERT_OR_REPLACE.format(
        announce=str(is_first).lower(),
        notified=NOTIFIED if is_quarantined(db) else ISOLATION,
    )
    params = {"id": id, "data": text, "has_expiry": new.expires_at is not None}
    rows = db.fetch(statement, {**new.params(), **params})
    if not rows:
        return None
    *row, held_id, max_attempts, _notified, _passed = rows[0]
    job = inserted_job(new, held_id, data, tuple(row))
    if held_id == id:
        if is_first:
            announced(db, new.lane)
        return Inserted(job, is_new=True)
    replaced = replace(job, max_attempts=max_attempts, is_new=False, is_replaced=True)
    return Inserted(replaced, is_new=False)
