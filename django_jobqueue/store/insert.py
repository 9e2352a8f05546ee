"""Enqueue: nothing → queued, in the caller's transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, connections, transaction
from psycopg import sql

from django_jobqueue.exceptions import AlreadyArchived
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.notify import NOTIFY_IDLE
from django_jobqueue.store.rows import Job

# One statement. It reads the job type's row, because operators override the priority
# there, and because a missing row must be an error now and not at commit.
INSERT: Final = f"""
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, expires_at, enqueued_by, tags)
SELECT %(id)s::uuid, type.name, coalesce(%(queue)s, type.queue),
       coalesce(%(priority)s, type.priority_override, %(declared_priority)s,
                type.priority),
       %(data)s::jsonb, due.at,
       coalesce(%(expires_at)s::timestamptz,
                due.at + coalesce(%(expires_in)s::interval, type.expires_in)),
       %(enqueued_by)s, %(tags)s::jsonb
  FROM jobqueue_jobtype AS type,
       LATERAL (SELECT coalesce(%(run_after)s::timestamptz,
                                clock_timestamp() + %(delay)s::interval)) AS due (at)
 WHERE type.name = %(job_type)s
{{conflict}}
RETURNING queue, priority, run_after, expires_at, created_at, {NOTIFY_IDLE}
"""
INSERT_NEW: Final = INSERT.format(conflict="")
INSERT_ONCE: Final = INSERT.format(conflict="ON CONFLICT (id) DO NOTHING")

# The same for a plain job of a type that was looked up a moment ago, in this process:
# half the planning, little to bind and little to send back.
INSERT_KNOWN: Final = """
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, created_at)
VALUES (%(id)s, {job_type}, {queue}, {priority}, %(data)s, statement_timestamp(),
        statement_timestamp())
RETURNING created_at{notify}
"""

DELETE_AGAIN: Final = "DELETE FROM jobqueue_queuedjob WHERE id = %(id)s"

# The one look at the job type before a COPY, which cannot look anything up itself.
PREPARE_MANY: Final = """
SELECT coalesce(%(queue)s, type.queue),
       coalesce(%(priority)s, type.priority_override, %(declared_priority)s,
                type.priority),
       due.at,
       coalesce(%(expires_at)s::timestamptz,
                due.at + coalesce(%(expires_in)s::interval, type.expires_in))
  FROM jobqueue_jobtype AS type,
       LATERAL (SELECT coalesce(%(run_after)s::timestamptz,
                                clock_timestamp() + %(delay)s::interval)) AS due (at)
 WHERE type.name = %(job_type)s
"""
COPY_MANY: Final = """
COPY jobqueue_queuedjob (
     id, job_type, queue, priority, run_after, expires_at, enqueued_by, tags, data)
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


@dataclass(frozen=True, slots=True)
class Known:
    """What an enqueue of these options came to a moment ago."""

    queue: str
    priority: int
    statement: str
    until: float  # time.monotonic()


_known: dict[tuple[Any, ...], Known] = {}


def insert(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Job | None:
    """Enqueue one job with a fresh id; None if there is no such job type.

    ``text`` is the JSON text of ``data``.
    """
    key = (db.alias, *new.lane)
    known = _known.get(key) if new.is_plain else None
    if known is not None and known.until > time.monotonic():
        moment = _insert_known(db, known, id, text)
        if moment is not None:
            row = (known.queue, known.priority, moment, None, moment)
            return _job(new, id, data, row)
    rows = db.fetch(INSERT_NEW, {**new.params(), "id": id, "data": text})
    if not rows:
        return None
    job = _job(new, id, data, rows[0])
    unusual = job.expires_at is not None or not new.is_plain
    if not unusual and not connections[db.alias].in_atomic_block:
        # What is read in a transaction may be undone; else it holds for a moment.
        _known[key] = _look(new.job_type, *rows[0])
    return job


def insert_once(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Job | None:
    """Enqueue one job under the caller's id, unless that id is in use.

    Returns the job that has the id, new or waiting; None if there is no such job type.
    Raises AlreadyArchived. The insert waits for a transaction that moves the same id to
    the archive; that move is not in its snapshot, hence the second look.
    """
    with transaction.atomic(using=db.alias):
        rows = db.fetch(INSERT_ONCE, {**new.params(), "id": id, "data": text})
        found = find(db, id)
        if found is not None and found.is_over:
            if rows:
                db.run(DELETE_AGAIN, {"id": id})
            raise AlreadyArchived(id, found.status)
    return _job(new, id, data, rows[0]) if rows else found


def insert_many(
    db: DjangoDatabase, new: NewJob, ids: Sequence[UUID], texts: Sequence[str]
) -> bool:
    """Enqueue one job for each data, by COPY; False if there is no such job type.

    100,000 jobs take 1.6 to 2 s; most of it is the index and the foreign key's check.
    """
    rows = db.fetch(PREPARE_MANY, new.params())
    if not rows:
        return False
    same = (new.job_type, *rows[0], new.enqueued_by, new.tags)
    fields = "\t".join(map(_copy_text, same))
    connection = connections[db.alias]
    with (
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
    db.run(NOTIFY_MANY, {"queue": rows[0][0]})
    return True


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
    values = {"job_type": job_type, "queue": queue, "priority": priority}
    literals = {
        name: sql.Literal(value).as_string().replace("%", "%%")
        for name, value in values.items()
    }
    notify = "" if row[-1] is None else ", pg_notify('jobqueue', 'q:' || queue)"
    return Known(
        queue=queue,
        priority=priority,
        statement=INSERT_KNOWN.format(**literals, notify=notify),
        until=time.monotonic() + KNOWN_FOR,
    )


def _insert_known(
    db: DjangoDatabase, known: Known, id: UUID, text: str
) -> datetime | None:
    """Enqueue without a look at the job type; None if its row is gone by now."""
    try:
        row = db.fetch_row(known.statement, {"id": id.hex, "data": text})
    except IntegrityError:
        if connections[db.alias].in_atomic_block:
            raise
        return None
    moment: datetime = row[0]
    return moment


def _job(new: NewJob, id: UUID, data: object, row: tuple[Any, ...]) -> Job:
    queue, priority, run_after, expires_at, created_at, *_notified = row
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
    )
