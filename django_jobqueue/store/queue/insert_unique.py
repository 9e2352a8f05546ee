"""Enqueue unless a job with the same unique key is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.notify import News
from django_jobqueue.store.queue.insert import (
    Inserted,
    NewJob,
    insert_once,
    insert_unless_there,
)
from django_jobqueue.store.queue.insert_many import prepare

# A key that is free when the job is claimed: that job must see what the caller writes,
# so it must not be claimed before the caller commits. A claim skips it, and may have
# passed it by then.
HOLDERS: Final = """
SELECT job.unique_key, job.id
  FROM jobqueue_queuedjob AS job
 WHERE job.unique_key = ANY (%(keys)s::uuid[])
"""
HOLDERS_KEPT: Final = f"""
SELECT job.unique_key, job.id,
       pg_notify('jobqueue', '{News.BEHIND.prefix}' || job.queue)
  FROM jobqueue_queuedjob AS job
 WHERE job.unique_key = ANY (%(keys)s::uuid[])
 ORDER BY job.unique_key
   FOR KEY SHARE OF job
"""

# The database computes them, so that whoever enqueues comes to the same.
KEYS: Final = """
SELECT coalesce(%(unique_key)s::uuid, jobqueue_unique_key(
         %(job_type)s, %(unique_rule)s::jsonb, call.data::jsonb))
  FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS call (data, number)
 ORDER BY call.number
"""

KNOWN: Final = """
SELECT count(*) FROM jobqueue_jobtype WHERE name IN (%(job_type)s, %(on_complete)s)
"""

PREPARED: Final = (
    "queue",
    "priority",
    "run_after",
    "expires_at",
    "on_complete",
    "created_at",
)  # what ``prepare`` returns

# In the order of the keys, so that two such statements wait and do not deadlock.
INSERT_CALLS: Final = """
INSERT INTO jobqueue_queuedjob (
       id, unique_key, data, job_type, queue, priority, run_after, expires_at,
       on_complete, created_at, enqueued_by, tags, max_attempts, metadata,
       unique_until_started, announce)
SELECT call.id, call.key, call.data::jsonb, %(job_type)s, %(queue)s, %(priority)s,
       %(run_after)s::timestamptz, %(expires_at)s::timestamptz, %(on_complete)s,
       %(created_at)s::timestamptz, %(enqueued_by)s, %(tags)s::jsonb,
       %(max_attempts)s::integer, %(metadata)s::jsonb, %(unique_until_started)s, true
  FROM unnest(%(keys)s::uuid[], %(ids)s::uuid[], %(texts)s::text[])
       AS call (key, id, data)
 ORDER BY call.key
    ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING
RETURNING unique_key
"""
CHUNK: Final = 1_000

Calls = Mapping[UUID, tuple[UUID, str]]  # by unique key: the id and the data


def insert_unique(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str, *, own_id: bool
) -> Inserted | None:
    """Enqueue one job, unless its unique key is in use; None if there is no such job
    type.

    Returns the job that has the key, new or not. The insert waits for another one of
    the same key, and for the end of a job that has it; if that is archived before it
    can be read, the key is free, and the insert is tried again.
    """
    verb = insert_once if own_id else insert_unless_there
    while True:
        inserted = verb(db, new, id, data, text)
        if inserted is not None:
            return inserted
        held = _holders(db, new, keys(db, new, [text]))
        found = find(db, next(iter(held.values()))) if held else None
        if found is not None and not found.is_over:
            return Inserted(found, is_new=False)
        if not held and not _is_known(db, new):
            return None


def keys(db: DjangoDatabase, new: NewJob, texts: Sequence[str]) -> list[UUID]:
    """The unique keys of jobs with these data, which are JSON texts, in order."""
    return [key for (key,) in db.fetch(KEYS, {**new.params(), "texts": list(texts)})]


def insert_many_unique(
    db: DjangoDatabase, new: NewJob, calls: Calls
) -> dict[UUID, UUID] | None:
    """Enqueue one job for each call whose key is free, in a transaction of the caller;
    None if there is no such job type.

    Returns, for the keys that are in use, the ids of the jobs that have them.
    """
    row = prepare(db, new)
    if row is None:
        return None
    same = {**new.params(), **dict(zip(PREPARED, row, strict=True))}
    held: dict[UUID, UUID] = {}
    keys = sorted(calls)
    for start in range(0, len(keys), CHUNK):
        left = keys[start : start + CHUNK]
        while left:
            ids, texts = zip(*(calls[key] for key in left), strict=True)
            params = {"keys": left, "ids": list(ids), "texts": list(texts)}
            made = {key for (key,) in db.fetch(INSERT_CALLS, {**same, **params})}
            left = [key for key in left if key not in made]
            held |= _holders(db, new, left)
            left = [key for key in left if key not in held]
    return held


def _holders(db: DjangoDatabase, new: NewJob, keys: Sequence[UUID]) -> dict[UUID, UUID]:
    """The ids of the jobs that have these keys."""
    if not keys:
        return {}
    statement = HOLDERS_KEPT if new.unique_until_started else HOLDERS
    return {key: id for key, id, *_ in db.fetch(statement, {"keys": list(keys)})}


def _is_known(db: DjangoDatabase, new: NewJob) -> bool:
    """Whether the job type has a row, and so has its follower."""
    names = {new.job_type, new.on_complete} - {None}
    return db.fetch(KNOWN, new.params()) == [(len(names),)]
