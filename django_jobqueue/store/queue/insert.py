"""Enqueue: nothing → queued, in the caller's transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import cycle
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction
from psycopg import sql

from django_jobqueue.domain.arguments import from_json
from django_jobqueue.exceptions import AlreadyArchived
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.notify import (
    ISOLATION,
    NOTIFIED,
    NOTIFIED_KNOWN,
    SEES_THE_PAST,
    announce_after,
    announced,
    announces,
    in_autocommit,
    notify_after,
)
from django_jobqueue.store.queue.insert_statement import (
    INSERT,
    INSERT_FEW,
    NEW,
    UNLESS_THERE,
    insert_jobs,
)
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job, tags_of

# The same for a plain job of a type that was looked up a moment ago, in this process:
# half the planning, little to bind and little to send back.
INSERT_KNOWN: Final = insert_jobs(
    {
        "id": "%(id)s",
        "job_type": "{job_type}",
        "queue": "{queue}",
        "priority": "{priority}",
        "data": "%(data)s",
        "run_after": "statement_timestamp()",
        "created_at": "statement_timestamp()",
        "announce": "{announce}",
    },
    then="{conflict} RETURNING created_at, CASE WHEN {is_new} THEN {notified} END",
)
IS_NEW: Final = "jobqueue_is_new(id)"

TRY_ARCHIVE: Final = """
INSERT INTO jobqueue_archivedjob (id, job_type, status) VALUES (%(id)s, '', 'cancelled')
    ON CONFLICT (id) DO NOTHING RETURNING id
"""


# How long, in seconds, a look at a job type holds for the next enqueues. An operator's
# new priority, and a worker that just became idle, may be missed for that time; such a
# worker polls often in its first tenths of a second.
KNOWN_FOR: Final = 0.1
MOST_KNOWN: Final = 500  # options; for a burst of each there are as many looks


class Inserted(NamedTuple):
    """The job that an enqueue came to; ``is_new`` unless it was there already."""

    job: Job
    is_new: bool
    held_until: datetime | None = None  # of a unique window that another job has


class Known(NamedTuple):
    """The job type's values that an enqueue of these options found a moment ago."""

    queue: str
    priority: int
    autocommit: str  # the statement, where it is a transaction by itself
    once: str  # the same for an id of the caller's
    first: str  # the same for the first such job of a longer transaction
    further: str  # and for the others
    hosts: Iterator[str] | None  # arrays, to be told in turns; None if nobody is idle
    since: float  # time.monotonic(), which a test may have set forward

    @property
    def holds(self) -> bool:
        """True if it is still a moment ago."""
        return 0 <= time.monotonic() - self.since < KNOWN_FOR

    def row_of(self, moment: datetime) -> tuple[Any, ...]:
        """What an INSERT returns of a job that was enqueued at this moment."""
        return self.queue, self.priority, moment, None, moment


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
        moment = _insert_known(db, known, new.lane, id, text)
        if moment is not None:
            return inserted_job(new, id, data, known.row_of(moment))
    row = _insert(db, NEW, new, id, text)
    if row is None:
        return None
    _learn(db, key, new, row)
    return inserted_job(new, id, data, row)


def insert_once(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job under the caller's id, unless that id is in use.

    Returns the job that has the id, new or waiting; None if there is no such job type,
    or if the unique key is in use. Raises AlreadyArchived, and in a transaction that
    sees the past OperationalError (serialization failure) if the id was archived since.
    The insert waits for a transaction that moves the same id to the archive; that move
    is not in its snapshot, hence the second look.
    """
    if in_autocommit(db):
        job = _insert_new(db, new, id, data, text)
        if job is not None:
            return Inserted(job, is_new=True)

    def insert_and_find() -> tuple[tuple[Any, ...] | None, Job | None]:
        row = _insert(db, UNLESS_THERE, new, id, text)
        existing = find(db, id)
        if existing is not None and existing.is_over:
            raise AlreadyArchived(id, existing.status)  # which undoes the insert
        if row is not None and row[-1] in SEES_THE_PAST:
            is_archived(db, id)  # which raises
        return row, existing

    row, existing = db.in_transaction(insert_and_find)
    if row is not None:
        return Inserted(inserted_job(new, id, data, row), is_new=True)
    return None if existing is None else Inserted(existing, is_new=False)


def _insert_new(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Job | None:
    """Enqueue one job under the caller's id in one round trip; None if that id is in
    use, or if it takes more to know."""
    key = (db.alias, *new.lane)
    known = _known.get(key) if new.is_plain else None
    try:
        if known is not None and known.holds:
            row = _run_known(db, known, known.once, new.lane[0], id, text)
            return inserted_job(new, id, data, known.row_of(row[0])) if row else None
        with_check = f"CASE WHEN {IS_NEW} THEN {NOTIFIED} END"
        inserted = _insert(db, UNLESS_THERE, new, id, text, notified=with_check)
    except IntegrityError:
        return None
    if inserted is None:
        return None
    _learn(db, key, new, inserted)
    return inserted_job(new, id, data, inserted)


def is_archived(db: DjangoDatabase, id: UUID) -> bool:
    """True if an archived job has the id; of one that is locked, once that is over.
    Raises OperationalError (serialization failure) if it was archived since this
    transaction's snapshot, which cannot see the row, while a unique index can. Nothing
    is left of the try."""
    with transaction.atomic(using=db.alias):
        is_free = bool(db.fetch(TRY_ARCHIVE, {"id": id}))
        transaction.set_rollback(True, using=db.alias)
    return not is_free


def insert_unless_there(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job with a fresh id, unless its unique key is in use; None if it is,
    or if there is no such job type."""
    row = _insert(db, UNLESS_THERE, new, id, text)
    return (
        None if row is None else Inserted(inserted_job(new, id, data, row), is_new=True)
    )


def _insert(
    db: DjangoDatabase,
    conflict: str,
    new: NewJob,
    id: UUID,
    text: str,
    notified: str = NOTIFIED,
) -> tuple[Any, ...] | None:
    """Insert it, and return values of the new row; None if there is none."""
    statement = INSERT if new.has_more else INSERT_FEW
    return run_insert(db, statement, new, id, text, conflict, notified)


def run_insert(
    db: DjangoDatabase,
    statement: str,
    new: NewJob,
    id: UUID,
    text: str,
    conflict: str = "",
    notified: str = NOTIFIED,
) -> tuple[Any, ...] | None:
    """Run a form of INSERT, and return values of the new row; None if there is none."""
    is_first = announces(db, new.lane)
    statement = statement.format(
        conflict=conflict,
        announce=str(is_first).lower(),
        notified=notified if in_autocommit(db) else ISOLATION,
    )
    rows = db.fetch(statement, {**new.params(), "id": id, "data": text})
    if not rows:
        return None
    if is_first:
        announced(db, new.lane)
    if not in_autocommit(db):
        return rows[0]
    *values, returned = rows[0]
    hosts = announce_after(db, new.job_type, values[0], id, returned)
    return *values, hosts


def _learn(
    db: DjangoDatabase, key: tuple[Any, ...], new: NewJob, row: tuple[Any, ...]
) -> None:
    """Remember for the next enqueues what this one found; what is older than a moment
    makes room. What is read in a transaction may be undone."""
    *_, expires_at, _created_at, is_followed, _notified = row
    if expires_at or is_followed or not new.is_plain or not in_autocommit(db):
        return
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[key] = _known_from(new.job_type, *row)


def _known_from(job_type: str, queue: str, priority: int, *row: Any) -> Known:
    """The cached values for the next enqueues, from the row that was just inserted."""
    values = {"job_type": job_type, "queue": queue, "priority": priority}
    literals = {
        name: sql.Literal(value).as_string().replace("%", "%%")
        for name, value in values.items()
    }
    hosts: list[str] | None = row[-1]
    notified = "NULL" if hosts is None else NOTIFIED_KNOWN  # if somebody is idle

    def statement(
        *, announce: bool = False, once: bool = False, notified: str = "NULL"
    ) -> str:
        return INSERT_KNOWN.format(
            **literals,
            announce=str(announce).lower(),
            conflict=UNLESS_THERE if once else NEW,
            is_new=IS_NEW if once else "true",
            notified=notified,
        )

    return Known(
        queue,
        priority,
        autocommit=statement(notified=notified),
        once=statement(notified=notified, once=True),
        first=statement(announce=True),
        further=statement(),
        hosts=None if hosts is None else cycle(_rotations(hosts)),
        since=time.monotonic(),
    )


def _rotations(hosts: list[str]) -> list[str]:
    """Arrays with each of these channels first, once."""
    rotations = [hosts[n:] + hosts[:n] for n in range(max(1, len(hosts)))]
    return [f"{{{','.join(rotation)}}}" for rotation in rotations]


def _run_known(
    db: DjangoDatabase, known: Known, statement: str, job_type: str, id: UUID, text: str
) -> tuple[Any, ...]:
    """Run a statement that is a transaction by itself."""
    params = {"id": id.hex, "data": text}
    if known.hosts is None:
        return db.fetch_row(statement, params)
    hosts = next(known.hosts)
    row = db.fetch_row(statement, {**params, "hosts": hosts})
    if row and row[1] is None:
        notify_after(db, job_type, known.queue, id, hosts)
    return row


def _insert_known(
    db: DjangoDatabase, known: Known, lane: tuple[Any, ...], id: UUID, text: str
) -> datetime | None:
    """Enqueue without a look at the job type; None if its row is gone by now."""
    autocommit = in_autocommit(db)
    first = not autocommit and announces(db, lane)
    try:
        if autocommit:
            row = _run_known(db, known, known.autocommit, lane[0], id, text)
        else:
            statement = known.first if first else known.further
            row = db.fetch_row(statement, {"id": id.hex, "data": text})
    except IntegrityError:
        if not autocommit:
            raise
        return None
    if first:
        announced(db, lane)
    moment: datetime = row[0]
    return moment


def inserted_job(new: NewJob, id: UUID, data: object, row: tuple[Any, ...]) -> Job:
    """The new job, from the values that its INSERT returned."""
    queue, priority, run_after, expires_at, created_at, *_ = row
    option = new.options.get
    backoff, metadata, tags = option("backoff"), option("metadata"), option("tags")
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
        max_attempts=option("max_attempts"),
        timeout=option("timeout"),
        backoff=None if backoff is None else from_json(backoff),
        metadata=None if metadata is None else from_json(metadata),
        tags=() if tags is None else tags_of(tags),
        is_new=True,
    )
