"""Enqueue: nothing → queued, in the caller's transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import IntegrityError, connections, transaction
from psycopg import sql

from django_jobqueue.arguments import from_json
from django_jobqueue.exceptions import AlreadyArchived
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.missing_tables import explaining
from django_jobqueue.store.notify import (
    ALWAYS,
    NOTIFY_IDLE,
    OUR_TURN,
    TURN,
    News,
    payload,
)
from django_jobqueue.store.rows import Job, tags_of

# By the caller, the code, or what the row says of a handler that is not known here. A
# follower that has no row would never come, so that is an error now.
ON_COMPLETE: Final = "coalesce(%(on_complete)s::text, nullif(type.on_complete, ''))"
FOLLOWER_IS_THERE: Final = """
   AND (%(on_complete)s::text IS NULL
        OR EXISTS (SELECT FROM jobqueue_jobtype WHERE name = %(on_complete)s))
"""

# What few jobs have.
MORE_COLUMNS: Final = ", max_attempts, metadata, unique_key, unique_until_started"
MORE_VALUES: Final = """, %(max_attempts)s::integer,
       %(metadata)s::jsonb, %(unique_key)s::uuid, %(unique_until_started)s"""

# One statement. It reads the job type's row, because operators override the priority
# there, and because a missing row must be an error now and not at commit.
INSERT: Final = f"""
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, expires_at, enqueued_by, tags,
       on_complete, created_at{MORE_COLUMNS})
SELECT %(id)s::uuid, type.name, coalesce(%(queue)s, type.queue),
       coalesce(%(priority)s, type.priority_override, %(declared_priority)s,
                type.priority),
       %(data)s::jsonb, due.at,
       coalesce(%(expires_at)s::timestamptz,
                due.at + coalesce(%(expires_in)s::interval, type.expires_in)),
       %(enqueued_by)s, %(tags)s::jsonb, {ON_COMPLETE}, clock_timestamp(){MORE_VALUES}
  FROM jobqueue_jobtype AS type,
       LATERAL (SELECT coalesce(%(run_after)s::timestamptz,
                                clock_timestamp() + %(delay)s::interval)) AS due (at)
 WHERE type.name = %(job_type)s {FOLLOWER_IS_THERE}
{{conflict}}
RETURNING queue, priority, run_after, expires_at, created_at, on_complete, {NOTIFY_IDLE}
"""
NEW: Final = ""
UNLESS_THERE: Final = "ON CONFLICT DO NOTHING"  # the id, or the unique key

# For a job that has nothing of it, a shorter one: 0.50 ms instead of 0.53.
INSERT_FEW: Final = (
    INSERT.replace(MORE_COLUMNS, "")
    .replace(MORE_VALUES, "")
    .replace(FOLLOWER_IS_THERE, "")
)

# The same for a plain job of a type that was looked up a moment ago, in this process:
# half the planning, little to bind and little to send back.
INSERT_KNOWN: Final = """
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, created_at)
VALUES (%(id)s, {job_type}, {queue}, {priority}, %(data)s, statement_timestamp(),
        statement_timestamp())
RETURNING created_at{notify}
"""
NOTIFY_KNOWN: Final = """,
          CASE WHEN {turn} THEN pg_notify('jobqueue', {news})::text END
"""

DELETE_AGAIN: Final = "DELETE FROM jobqueue_queuedjob WHERE id = %(id)s"

# The one look at the job type before many jobs are inserted.
PREPARE_MANY: Final = f"""
SELECT coalesce(%(queue)s, type.queue),
       coalesce(%(priority)s, type.priority_override, %(declared_priority)s,
                type.priority),
       due.at,
       coalesce(%(expires_at)s::timestamptz,
                due.at + coalesce(%(expires_in)s::interval, type.expires_in)),
       {ON_COMPLETE}, clock_timestamp()
  FROM jobqueue_jobtype AS type,
       LATERAL (SELECT coalesce(%(run_after)s::timestamptz,
                                clock_timestamp() + %(delay)s::interval)) AS due (at)
 WHERE type.name = %(job_type)s {FOLLOWER_IS_THERE}
"""
COPY_MANY: Final = """
COPY jobqueue_queuedjob (
     id, job_type, queue, priority, run_after, expires_at, on_complete, created_at,
     enqueued_by, tags, max_attempts, metadata, data)
FROM STDIN
"""
COPY_CHUNK: Final = 1_000  # lines sent at once
NOTIFY_MANY: Final = f"SELECT {NOTIFY_IDLE} FROM (SELECT %(queue)s) AS job (queue)"


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """What an enqueue asks for. None leaves a choice to the job type."""

    job_type: str
    queue: str | None = None
    priority: int | None = None
    declared_priority: int | None = None
    run_after: datetime | None = None
    delay: timedelta = timedelta(0)  # from now, if run_after is None
    expires_at: datetime | None = None
    expires_in: timedelta | None = None  # from when it is due
    enqueued_by: str | None = None
    tags: str | None = None  # JSON text
    max_attempts: int | None = None
    metadata: str | None = None  # JSON text
    on_complete: str | None = None
    unique_key: UUID | None = None
    unique_until_started: bool = False

    @cached_property
    def has_more(self) -> bool:
        """Whether it has something that few jobs have."""
        more = (self.max_attempts, self.metadata, self.on_complete, self.unique_key)
        return any(more)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is due at once, never expires, and has nothing unusual."""
        return not any(
            (
                self.run_after,
                self.delay,
                self.expires_at,
                self.expires_in,
                self.enqueued_by,
                self.tags,
                self.has_more,
            )
        )

    @cached_property
    def lane(self) -> tuple[Any, ...]:
        """What the job type's row is looked up for."""
        return self.job_type, self.queue, self.priority, self.declared_priority

    def params(self) -> dict[str, Any]:
        """The parameters of the statements above."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


# How long, in seconds, a look at a job type holds for the next enqueues. An operator's
# new priority, and a worker that just became idle, may be missed for so long; such a
# worker polls often in its first tenths of a second.
KNOWN_FOR: Final = 0.1


class Inserted(NamedTuple):
    """The job that an enqueue came to; ``is_new`` unless it was there already."""

    job: Job
    is_new: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What an enqueue of these options came to a moment ago."""

    queue: str
    priority: int
    alone: str  # the statement, where it is a transaction by itself
    within: str  # the same within a transaction
    since: float  # time.monotonic(), which a test may have set forward

    @property
    def holds(self) -> bool:
        """Whether it is still a moment ago."""
        return 0 <= time.monotonic() - self.since < KNOWN_FOR


_known: dict[tuple[Any, ...], Known] = {}


def insert(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Job | None:
    """Enqueue one job with a fresh id; None if there is no such job type.

    ``text`` is the JSON text of ``data``.
    """
    key = (db.alias, *new.lane)
    known = _known.get(key) if new.is_plain else None
    if known is not None and known.holds:
        moment = _insert_known(db, known, id, text)
        if moment is not None:
            return _job(
                new, id, data, (known.queue, known.priority, moment, None, moment)
            )
    row = _insert(db, NEW, new, id, text)
    if row is None:
        return None
    job = _job(new, id, data, row)
    *_, expires_at, _created_at, on_complete, _notified = row
    unusual = expires_at or on_complete or not new.is_plain
    if not unusual and _is_alone(db):
        # What is read in a transaction may be undone; else it holds for a moment.
        _known[key] = _look(new.job_type, *row)
    return job


def insert_once(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job under the caller's id, unless that id is in use.

    Returns the job that has the id, new or waiting; None if there is no such job type,
    or if the unique key is in use. Raises AlreadyArchived. The insert waits for a
    transaction that moves the same id to the archive; that move is not in its snapshot,
    hence the second look.
    """
    with transaction.atomic(using=db.alias):
        row = _insert(db, UNLESS_THERE, new, id, text)
        found = find(db, id)
        if found is not None and found.is_over:
            if row is not None:
                db.run(DELETE_AGAIN, {"id": id})
            raise AlreadyArchived(id, found.status)
    if row is not None:
        return Inserted(_job(new, id, data, row), is_new=True)
    return None if found is None else Inserted(found, is_new=False)


def insert_unless_there(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job with a fresh id, unless its unique key is in use; None if it is,
    or if there is no such job type."""
    row = _insert(db, UNLESS_THERE, new, id, text)
    return None if row is None else Inserted(_job(new, id, data, row), is_new=True)


def insert_many(
    db: DjangoDatabase, new: NewJob, ids: Sequence[UUID], texts: Sequence[str]
) -> bool:
    """Enqueue one job for each data, by COPY; False if there is no such job type.

    100,000 jobs take 1.6 to 2 s; most of it is the index and the foreign key's check.
    """
    found = prepare(db, new)
    if found is None:
        return False
    own = (new.enqueued_by, new.tags, new.max_attempts, new.metadata)
    same = (new.job_type, *found, *own)
    fields = "\t".join(map(_copy_text, same))
    connection = connections[db.alias]
    with (
        explaining(db.alias),
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(COPY_MANY) as copy,
    ):
        for start in range(0, len(ids), COPY_CHUNK):
            part = slice(start, start + COPY_CHUNK)
            lines = [
                f"{id}\t{fields}\t{_copy_text(text)}\n"
                for id, text in zip(ids[part], texts[part], strict=True)
            ]
            copy.write("".join(lines))
    notify_many(db, found[0])
    return True


def notify_many(db: DjangoDatabase, queue: str) -> None:
    """Notify an idle worker of the queue that there are jobs."""
    db.run(NOTIFY_MANY.format(turn=_turn(db)), {"queue": queue})


def prepare(db: DjangoDatabase, new: NewJob) -> tuple[Any, ...] | None:
    """The queue, priority, ``run_after``, ``expires_at``, follower and ``created_at``
    of many jobs; None if there is no such job type."""
    rows = db.fetch(PREPARE_MANY, new.params())
    return rows[0] if rows else None


def _insert(
    db: DjangoDatabase, conflict: str, new: NewJob, id: UUID, text: str
) -> tuple[Any, ...] | None:
    """What the new row says; None if there is none."""
    statement = INSERT if new.has_more else INSERT_FEW
    statement = statement.format(conflict=conflict, turn=_turn(db))
    rows = db.fetch(statement, {**new.params(), "id": id, "data": text})
    return rows[0] if rows else None


def _is_alone(db: DjangoDatabase) -> bool:
    """Whether a statement that is run now is a transaction by itself."""
    return connections[db.alias].get_autocommit()


def _turn(db: DjangoDatabase) -> str:
    """The condition on which a statement that is run now notifies idle workers."""
    return OUR_TURN if _is_alone(db) else ALWAYS


def _copy_text(value: object) -> str:
    """A value in the text format of COPY."""
    if value is None:
        return r"\N"
    text = str(value)
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _look(job_type: str, queue: str, priority: int, *row: Any) -> Known:
    """What the row that was just inserted tells about the next ones."""
    values = {
        "job_type": job_type,
        "queue": queue,
        "priority": priority,
        "news": payload(News.JOBS, queue),
    }
    literals = {
        name: sql.Literal(value).as_string().replace("%", "%%")
        for name, value in values.items()
    }
    key = row[-1]
    if key is None:
        plain = INSERT_KNOWN.format(**literals, notify="")
        alone, within = plain, plain
    else:
        notifying = INSERT_KNOWN.replace("{notify}", NOTIFY_KNOWN)
        alone, within = (
            notifying.format(**literals, turn=turn)
            for turn in (TURN.format(first=key, second=~key), ALWAYS)
        )
    return Known(queue, priority, alone, within, since=time.monotonic())


def _insert_known(
    db: DjangoDatabase, known: Known, id: UUID, text: str
) -> datetime | None:
    """Enqueue without a look at the job type; None if its row is gone by now."""
    is_alone = _is_alone(db)
    statement = known.alone if is_alone else known.within
    try:
        row = db.fetch_row(statement, {"id": id.hex, "data": text})
    except IntegrityError:
        if not is_alone:
            raise
        return None
    moment: datetime = row[0]
    return moment


def _job(new: NewJob, id: UUID, data: object, row: tuple[Any, ...]) -> Job:
    queue, priority, run_after, expires_at, created_at, *_ = row
    return Job(
        id=id,
        job_type=new.job_type,
        queue=queue,
        priority=priority,
        status="queued",
        data=data,
        run_after=run_after,
        expires_at=expires_at,
        created_at=created_at,
        max_attempts=new.max_attempts,
        metadata=None if new.metadata is None else from_json(new.metadata),
        tags=() if new.tags is None else tags_of(new.tags),
    )
