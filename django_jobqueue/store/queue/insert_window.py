"""Enqueue unless a unique window is open: a key that is held for a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.queue.insert import Inserted, inserted_job, run_insert
from django_jobqueue.store.queue.insert_statement import FOLLOWERS_ARE_THERE, insert_of
from django_jobqueue.store.queue.new_job import NewJob

# The primary key makes callers wait for each other. A window that is over is taken; no
# row comes back of one that is open.
TAKE: Final = """
    ON CONFLICT (key) DO UPDATE
   SET job_id = excluded.job_id, held_until = excluded.held_until,
       opened_at = excluded.opened_at
 WHERE held.held_until <= clock_timestamp()
"""
_KEY: Final = """
coalesce(%(unique_key)s::uuid, jobqueue_unique_key(
  %(job_type)s, %(unique_rule)s::jsonb, %(data)s::jsonb))
"""

# One statement, so one transaction. The key is not in the job's row: when the window is
# over the next job may come, whatever became of this one.
INSERT_IN_WINDOW: Final = f"""
WITH taken AS (
  INSERT INTO jobqueue_uniquewindow AS held (key, job_id, held_until, opened_at)
  SELECT {_KEY}, %(id)s::uuid, clock_timestamp() + %(unique_for)s::interval,
         clock_timestamp()
    FROM jobqueue_jobtype AS type
   WHERE type.name = %(job_type)s {FOLLOWERS_ARE_THERE}
  {TAKE}
  RETURNING job_id
)""" + insert_of(condition="EXISTS (SELECT FROM taken) AND ", unique_key="NULL::uuid")

OPEN_WINDOW: Final = f"""
SELECT job_id, held_until FROM jobqueue_uniquewindow WHERE key = {_KEY}
"""
OPEN_WINDOWS: Final = """
SELECT key, job_id FROM jobqueue_uniquewindow WHERE key = ANY (%(keys)s::uuid[])
"""

# In the order of the keys, so that two such statements wait and do not deadlock.
TAKE_WINDOWS: Final = f"""
INSERT INTO jobqueue_uniquewindow AS held (key, job_id, held_until, opened_at)
SELECT call.key, call.id, clock_timestamp() + %(unique_for)s::interval,
       clock_timestamp()
  FROM unnest(%(keys)s::uuid[], %(ids)s::uuid[]) AS call (key, id)
 ORDER BY call.key
{TAKE}
RETURNING key
"""

# Of a window that was opened while the database's clock was ahead, the time counts from
# now.
SET_BACK: Final = """
UPDATE jobqueue_uniquewindow AS held
   SET held_until = clock_timestamp()
                    + extract(epoch FROM held.held_until - held.opened_at)::float8
                      * interval '1 second',
       opened_at = clock_timestamp()
  FROM (SELECT key FROM jobqueue_uniquewindow
         WHERE opened_at > clock_timestamp() + interval '1 second'
         ORDER BY key
           FOR NO KEY UPDATE SKIP LOCKED) AS ahead
 WHERE held.key = ahead.key
"""


def insert_in_window(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job with a fresh id, unless the window of its key is open; None if it
    is, or if there is no such job type."""
    row = run_insert(db, INSERT_IN_WINDOW, new, id, text)
    return None if row is None else Inserted(inserted_job(new, id, data, row), True)


def open_window(
    db: DjangoDatabase, new: NewJob, text: str
) -> tuple[UUID, datetime | None] | None:
    """The job that holds the key of this call, and until when; None is forever."""
    rows = db.fetch(OPEN_WINDOW, {**new.params(), "data": text})
    return None if not rows else (rows[0][0], rows[0][1])


def take_windows(
    db: DjangoDatabase, new: NewJob, keys: Sequence[UUID], ids: Sequence[UUID]
) -> list[UUID]:
    """Open a window for each of these keys whose window is not open; return those."""
    params = {"unique_for": new.unique_for, "keys": list(keys), "ids": list(ids)}
    return [key for (key,) in db.fetch(TAKE_WINDOWS, params)]


def open_windows(db: DjangoDatabase, keys: Sequence[UUID]) -> dict[UUID, UUID]:
    """The jobs that hold these keys, by key."""
    return dict(db.fetch(OPEN_WINDOWS, {"keys": list(keys)}))


def set_back(db: Database) -> None:
    """The database's clock was set back: let windows count from now."""
    db.run(SET_BACK)
