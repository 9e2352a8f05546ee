"""Enqueue under an id of the caller's: nothing → queued, at most once."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction

from django_jobqueue.exceptions import AlreadyArchived
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.queue.announcing import (
    NOTIFIED,
    SEES_THE_PAST,
    in_autocommit,
)
from django_jobqueue.store.queue.insert import (
    IS_NEW,
    Inserted,
    insert_row,
    inserted_job,
    known_of,
    learn,
    run_known,
)
from django_jobqueue.store.queue.insert_statement import UNLESS_THERE
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job

TRY_ARCHIVE: Final = """
INSERT INTO jobqueue_archivedjob (id, job_type, status) VALUES (%(id)s, '', 'cancelled')
    ON CONFLICT (id) DO NOTHING RETURNING id
"""


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
        row = insert_row(db, UNLESS_THERE, new, id, text)
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
    known = known_of(db, new)
    try:
        if known is not None:
            row = run_known(db, known, known.once, new.lane[0], id, text)
            return inserted_job(new, id, data, known.row_of(row[0])) if row else None
        with_check = f"CASE WHEN {IS_NEW} THEN {NOTIFIED} END"
        inserted = insert_row(db, UNLESS_THERE, new, id, text, notified=with_check)
    except IntegrityError:
        return None
    if inserted is None:
        return None
    learn(db, new, inserted)
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
    row = insert_row(db, UNLESS_THERE, new, id, text)
    return (
        None if row is None else Inserted(inserted_job(new, id, data, row), is_new=True)
    )
