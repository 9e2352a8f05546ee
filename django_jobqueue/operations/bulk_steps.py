"""The steps of bulk operations that have started: chunk by chunk, until the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import BulkState
from django_jobqueue.domain.throttle import Throttle
from django_jobqueue.operations.bulk import enqueue_job, get, record_operation
from django_jobqueue.store.bulk import chunk, operation_rows
from django_jobqueue.store.bulk.chunk import Chunk
from django_jobqueue.store.connection import DjangoDatabase


def step(
    id: UUID, *, max_rows: int, most: int | None = None, job: UUID | None = None
) -> Chunk | None:
    """Do one chunk, in a transaction of its own; None if the operation is not at work,
    or not worked off by this ``job``.

    ``max_rows`` bounds the rows that are looked at, ``most`` the jobs that are handled.
    """
    db = DjangoDatabase()

    def work() -> Chunk | None:
        operation = operation_rows.lock(db, id)
        if operation is None or operation.state not in operation_rows.ACTIVE:
            return None
        if job is not None and operation.job_id != job:
            return None
        return chunk.chunk(db, operation, max_rows=max_rows, most=most)

    return db.in_transaction(work)


def run_here(
    id: UUID,
    seconds: float,
    *,
    by: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Do chunks for about so long, where no worker does; returns how many jobs were
    changed."""
    operation = get(id)
    now = clock()
    end, changed = now + seconds, 0
    throttle = Throttle(operation.per_minute, now)
    while now < end:
        done = step(id, max_rows=throttle.size, most=throttle.most)
        if done is None:
            break
        changed += done.changed
        began, now = now, clock()
        pause = throttle.did(changed=done.changed, seconds=now - began, now=now)
        if done.over or pause > seconds:
            break
    record_operation("run a step of", operation, by, changed)
    return changed


def work_here(
    id: UUID,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Chunk]:
    """Do chunk after chunk here, and yield each, until the end, or until somebody
    pauses or stops the operation."""
    throttle = Throttle(get(id).per_minute, clock())
    while True:
        began = clock()
        done = step(id, max_rows=throttle.size, most=throttle.most)
        if done is None:
            return
        now = clock()
        if done.over:
            ended(id)
        yield done
        if done.over:
            return
        sleep(throttle.did(changed=done.changed, seconds=now - began, now=now))


def ended(id: UUID) -> None:
    """Tell that an operation came to its end, and what it really did."""
    operation = get(id)
    record_operation("end", operation, operation.created_by, operation.changed)


def hand_over(id: UUID, *, job: UUID, after: float) -> bool:
    """Let a new job go on with it, in so many seconds; False if ``job`` does not work
    it off."""
    db, successor = DjangoDatabase(), new_id()

    def hand() -> bool:
        handed = operation_rows.hand_over(db, id, job=job, to=successor)
        if handed:
            enqueue_job(id, successor, run_after=timedelta(seconds=after))
        return handed

    return db.in_transaction(hand)


def fail(id: UUID, message: str) -> bool:
    """Write down that it cannot go on, until somebody resumes it."""
    db = DjangoDatabase()
    return operation_rows.move(
        db, id, operation_rows.ACTIVE, BulkState.FAILED, error=message
    )
