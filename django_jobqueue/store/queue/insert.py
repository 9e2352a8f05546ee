"""Enqueue: nothing → queued, in the caller's transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from itertools import cycle
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import IntegrityError
from psycopg import sql

from django_jobqueue.domain.arguments import from_json
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.announcing import (
    ISOLATION,
    NOTIFIED,
    NOTIFIED_KNOWN,
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
        """The row of a job enqueued at this moment, as an INSERT returns it."""
        return self.queue, self.priority, moment, None, moment


_known: dict[tuple[Any, ...], Known] = {}


def insert(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Job | None:
    """Enqueue one job with a fresh id; None if there is no such job type.

    ``text`` is the JSON text of ``data``.
    """
    known = known_of(db, new)
    if known is not None:
        moment = _insert_known(db, known, new.lane, id, text)
        if moment is not None:
            return inserted_job(new, id, data, known.row_of(moment))
    row = insert_row(db, NEW, new, id, text)
    if row is None:
        return None
    learn(db, new, row)
    return inserted_job(new, id, data, row)


def insert_row(
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


def known_of(db: DjangoDatabase, new: NewJob) -> Known | None:
    """The findings of a recent enqueue with these options, if they hold for this."""
    known = _known.get((db.alias, *new.lane)) if new.is_plain else None
    return known if known is not None and known.holds else None


def learn(db: DjangoDatabase, new: NewJob, row: tuple[Any, ...]) -> None:
    """Remember for the next enqueues what this one found; what is older than a moment
    makes room. What is read in a transaction may be undone."""
    *_, expires_at, _created_at, is_followed, _notified = row
    if expires_at or is_followed or not new.is_plain or not in_autocommit(db):
        return
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[db.alias, *new.lane] = _known_from(new.job_type, *row)


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


def run_known(
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
            row = run_known(db, known, known.autocommit, lane[0], id, text)
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
