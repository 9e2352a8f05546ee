"""Edits the data of a waiting job."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.expired_keys import FREE_KEY_OF_EDIT
from django_jobqueue.store.remade_keys import LIMIT_KEY

# The lock waits for a claim that goes on this moment, and then sees that it runs. The
# comparison is that of jsonb: spaces and the order of keys do not matter. Keys that are
# made of the data are made again.
EDIT: Final = f"""
WITH held AS MATERIALIZED (
  SELECT id, status,
         %(expected)s::jsonb IS NULL OR data = %(expected)s::jsonb AS as_seen
    FROM jobqueue_queuedjob
   WHERE id = %(id)s
     FOR UPDATE
), edited AS (
  UPDATE jobqueue_queuedjob AS job
     SET data = %(data)s::jsonb,
         limit_key = {LIMIT_KEY.format(row="job", data="%(data)s")},
         unique_key = CASE WHEN job.unique_key = jobqueue_unique_key(
                                  type.name, type.unique_rule, job.data)
                           THEN jobqueue_unique_key(
                                  type.name, type.unique_rule, %(data)s::jsonb)
                           ELSE job.unique_key END
    FROM held, jobqueue_jobtype AS type
   WHERE type.name = job.job_type AND job.id = held.id
     AND held.status = 'queued' AND held.as_seen
)
SELECT status, as_seen FROM held
"""


class Edited(NamedTuple):
    """The result of an edit: it was done if the job was queued, and its data
    unchanged."""

    status: str
    as_seen: bool

    @property
    def is_done(self) -> bool:
        """True if the job has the new data."""
        return self.status == "queued" and self.as_seen


def edit(db: Database, id: UUID, data: str, expected: str | None) -> Edited | None:
    """Give a waiting job other data, if they are those expected; None if there is no
    such job among the queued. Both are JSON texts. Raises IntegrityError if another job
    has the unique key that comes of them."""
    db.run(FREE_KEY_OF_EDIT, {"id": id, "data": data})
    rows = db.fetch(EDIT, {"id": id, "data": data, "expected": expected})
    return Edited(*rows[0]) if rows else None
