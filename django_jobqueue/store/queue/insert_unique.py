"""Enqueue unique jobs, one or many: new, replaced, or there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.columns import TYPES
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.notify import News
from django_jobqueue.store.queue.expired_keys import FREE_KEYS
from django_jobqueue.store.queue.insert import Inserted
from django_jobqueue.store.queue.insert_many import prepare
from django_jobqueue.store.queue.insert_once import insert_once, insert_unless_there
from django_jobqueue.store.queue.insert_replace import (
    PASSED,
    REPLACE,
    insert_or_replace,
)
from django_jobqueue.store.queue.insert_statement import OF_TYPE, insert_jobs, values_of
from django_jobqueue.store.queue.insert_window import (
    insert_in_window,
    open_window,
    open_windows,
    take_windows,
)
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job

# A key that is free when the job is claimed: that job must see what the caller writes,
# so it must not be claimed before the caller commits. A claim skips it, and may have
# passed it by then.
_HELD: Final = f"""
WITH freed AS ({FREE_KEYS} RETURNING id)
SELECT job.unique_key, job.id{{told}}
  FROM jobqueue_queuedjob AS job
 WHERE job.unique_key = ANY (%(keys)s::uuid[])
   AND job.id NOT IN (SELECT id FROM freed)
"""
HOLDERS: Final = _HELD.format(told="")
LOCKED_HOLDERS: Final = (
    _HELD.format(
        told=f", pg_notify('jobqueue', '{News.BEHIND.prefix}' || job.queue)",
    )
    + " ORDER BY job.unique_key FOR KEY SHARE OF job"
)

# The database computes them, so that whoever enqueues comes to the same.
KEYS: Final = """
SELECT coalesce(%(unique_key)s::uuid, jobqueue_unique_key(
         %(job_type)s, %(unique_rule)s::jsonb, call.data::jsonb))
  FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS call (data, number)
 ORDER BY call.number
"""

KNOWN: Final = """
SELECT count(*) FROM jobqueue_jobtype
 WHERE name = %(job_type)s OR name = ANY (%(follower_types)s::text[])
"""

# What ``prepare`` returns.
PREPARED: Final = (*OF_TYPE, "limit_name", "limit_rule")


def _insert_calls_of(key: str, then: str) -> str:
    """The INSERT of calls, with what ``prepare`` returned; in the order of the keys, so
    that two such statements wait and do not deadlock."""
    values = {
        **values_of(),
        **{name: f"%({name})s::{TYPES[name]}" for name in OF_TYPE},
        "id": "call.id",
        "job_type": "%(job_type)s",
        "data": "call.data::jsonb",
        "limit_key": """coalesce(%(limit_name)s || ' ' || %(limit_key)s::text,
                jobqueue_limit_key(%(limit_rule)s::jsonb, call.data::jsonb))""",
        "unique_key": key,
        "announce": "true",
    }
    rows = """\
  FROM unnest(%(keys)s::uuid[], %(ids)s::uuid[], %(texts)s::text[])
       AS call (key, id, data)
 ORDER BY call.key"""
    return insert_jobs(values, rows=rows, then=then)


INSERT_CALLS: Final = _insert_calls_of(
    "call.key",
    "ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING"
    " RETURNING unique_key, id",
)
REPLACE_CALLS: Final = _insert_calls_of(
    "call.key",
    f"{REPLACE} RETURNING unique_key, id, {PASSED.format(id='ALL (%(ids)s::uuid[])')}",
)
# The key is in the window's row alone.
INSERT_TAKEN: Final = _insert_calls_of("NULL::uuid", "RETURNING id")
CHUNK: Final = 1_000
PRUNED: Final = "pruned"  # the status of a job that is no more, and holds a key

Calls = Mapping[UUID, tuple[UUID, str]]  # by unique key: the id and the data


class ManyInserted(NamedTuple):
    """The jobs that calls came to whose key was in use, by key."""

    existing: dict[UUID, UUID]
    replaced: dict[UUID, UUID]  # these have the new data


def insert_unique(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str, *, own_id: bool
) -> Inserted | None:
    """Enqueue one job, unless its unique key is in use; None if there is no such job
    type.

    Returns the job that has the key, new or not. The insert waits for another one of
    the same key, and for the end of a job that has it; if that is archived before it
    can be read, the key is free, and the insert is tried again.
    """
    while True:
        if new.unique_window:
            inserted = insert_in_window(db, new, id, data, text)
        elif new.replaces:
            inserted = insert_or_replace(db, new, id, data, text)
        elif own_id:
            inserted = insert_once(db, new, id, data, text)
        else:
            inserted = insert_unless_there(db, new, id, data, text)
        inserted = inserted or _existing(db, new, text)
        if inserted is not None or not _is_known(db, new):
            return inserted


def _existing(db: DjangoDatabase, new: NewJob, text: str) -> Inserted | None:
    """The job that has the key of this call; None if it is free by now."""
    if new.unique_window:
        if (held := open_window(db, new, text)) is None:
            return None
        id, held_until = held
        existing = find(db, id) or _pruned(new, id)
        return Inserted(existing, is_new=False, held_until=held_until)
    holders = _holders(db, new, keys(db, new, [text]))
    job = find(db, next(iter(holders.values()))) if holders else None
    return None if job is None or job.is_over else Inserted(job, is_new=False)


def _pruned(new: NewJob, id: UUID) -> Job:
    """A job of which only the unique window is left."""
    moment = datetime.fromtimestamp((id.int >> 80) / 1_000, UTC)  # of a UUID version 7
    return Job(
        id=id,
        job_type=new.job_type,
        queue=new.queue or "",
        priority=new.priority or 0,
        status=PRUNED,
        data={},
        run_after=moment,
        expires_at=None,
        created_at=moment,
    )


def keys(db: DjangoDatabase, new: NewJob, texts: Sequence[str]) -> list[UUID]:
    """The unique keys of jobs with these data, which are JSON texts, in order."""
    return [key for (key,) in db.fetch(KEYS, {**new.params(), "texts": list(texts)})]


def insert_many_unique(
    db: DjangoDatabase, new: NewJob, calls: Calls
) -> ManyInserted | None:
    """Enqueue one job for each call whose key is free, in a transaction of the caller;
    None if there is no such job type."""
    row = prepare(db, new)
    if row is None:
        return None
    same = {**new.params(), **dict(zip(PREPARED, row, strict=True))}
    same["has_expiry"] = new.expires_at is not None
    many = ManyInserted({}, {})
    keys = sorted(calls)
    for start in range(0, len(keys), CHUNK):
        left = keys[start : start + CHUNK]
        while left:
            insert = _insert_taken if new.unique_window else _insert_calls
            inserted_ids = insert(db, new, same, calls, left)
            left = [key for key in left if key not in inserted_ids]
            for key, id in inserted_ids.items():
                if id != calls[key][0]:
                    many.replaced[key] = id
            if left and new.unique_window:
                many.existing.update(open_windows(db, left))
            elif left:
                many.existing.update(_holders(db, new, left))
            left = [key for key in left if key not in many.existing]
    return many


def _insert_calls(
    db: DjangoDatabase,
    new: NewJob,
    same: Mapping[str, Any],
    calls: Calls,
    keys: Sequence[UUID],
) -> dict[UUID, UUID]:
    """Enqueue these calls, or replace data; return the jobs of those that did, by
    key."""
    statement = REPLACE_CALLS if new.replaces else INSERT_CALLS
    params = {**same, **_arrays(calls, keys)}
    return {key: id for key, id, *_ in db.fetch(statement, params)}


def _insert_taken(
    db: DjangoDatabase,
    new: NewJob,
    same: Mapping[str, Any],
    calls: Calls,
    keys: Sequence[UUID],
) -> dict[UUID, UUID]:
    """The same for calls whose windows are not open."""
    taken = take_windows(db, new, keys, [calls[key][0] for key in keys])
    if taken:
        db.fetch(INSERT_TAKEN, {**same, **_arrays(calls, taken)})
    return {key: calls[key][0] for key in taken}


def _arrays(calls: Calls, keys: Sequence[UUID]) -> dict[str, list[Any]]:
    ids, texts = zip(*(calls[key] for key in keys), strict=True)
    return {"keys": list(keys), "ids": list(ids), "texts": list(texts)}


def _holders(db: DjangoDatabase, new: NewJob, keys: Sequence[UUID]) -> dict[UUID, UUID]:
    """The ids of the jobs that have these keys."""
    if not keys:
        return {}
    statement = LOCKED_HOLDERS if new.unique_until_started else HOLDERS
    return {key: id for key, id, *_ in db.fetch(statement, {"keys": list(keys)})}


def _is_known(db: DjangoDatabase, new: NewJob) -> bool:
    """True if the job type has a row, and so have its followers."""
    names = {new.job_type, *(new.follower_types or ())}
    return db.fetch(KNOWN, new.params()) == [(len(names),)]


def insert_many_keyed(
    db: DjangoDatabase, new: NewJob, ids: Sequence[UUID], texts: Sequence[str]
) -> bool:
    """Enqueue one job for each data, all or none, with keys that the database makes, as
    its type has a limit by key; False if there is no such job type."""

    def insert() -> bool:
        row = prepare(db, new)
        if row is None:
            return False
        same = {**new.params(), **dict(zip(PREPARED, row, strict=True))}
        for start in range(0, len(ids), CHUNK):
            part = list(ids[start : start + CHUNK])
            own = {"keys": part, "ids": part, "texts": texts[start : start + CHUNK]}
            db.fetch(INSERT_TAKEN, {**same, **own})
        return True

    return db.in_transaction(insert)
