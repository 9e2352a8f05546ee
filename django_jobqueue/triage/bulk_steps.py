"""The steps of bulk operations that have started: chunk by chunk, until the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction

from django_jobqueue.ids import new_id
from django_jobqueue.states import BulkState
from django_jobqueue.store import bulk, operations
from django_jobqueue.store.budget import limit_time
from django_jobqueue.store.bulk import Chunk
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.triage.bulk import enqueue_job, filter_text
from django_jobqueue.triage.telling import tell

LONGEST: Final = 30_000  # milliseconds of a statement


def step(
    id: UUID, *, look: int, most: int | None = None, job: UUID | None = None
) -> Chunk | None:
    """Do one chunk, in a transaction of its own; None if the operation is not at work,
    or not worked off by this ``job``.

    ``look`` bounds the rows that are looked at, ``most`` the jobs that are handled.
    """
    db = DjangoDatabase()
    with transaction.atomic(using=db.alias):
        limit_time(db, LONGEST)
        operation = operations.lock(db, id)
        if operation is None or operation.state not in operations.ACTIVE:
            return None
        if job is not None and operation.job_id != job:
            return None
        done = bulk.chunk(db, operation, look=look, most=most)
    if done.over:
        details = {
            "operation": str(id),
            "filter": filter_text(operation.selection),
            "seen": operation.seen + done.changed + sum(done.skipped.values()),
            "reason": operation.reason,
        }
        by = operation.created_by
        verb = f"end bulk {operation.kind}"
        tell(verb, by, operation.changed + done.changed, details)
    return done


def hand_over(id: UUID, *, job: UUID, after: float) -> bool:
    """Let a new job go on with it, in so many seconds; False if ``job`` does not work
    it off."""
    db, successor = DjangoDatabase(), new_id()
    with transaction.atomic(using=db.alias):
        handed = operations.hand_over(db, id, job=job, to=successor)
        if handed:
            enqueue_job(id, successor, run_after=timedelta(seconds=after))
    return handed


def fail(id: UUID, message: str) -> bool:
    """Write down that it cannot go on, until somebody resumes it."""
    db = DjangoDatabase()
    return operations.move(db, id, operations.ACTIVE, BulkState.FAILED, error=message)
