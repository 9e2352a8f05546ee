"""The jobs of bulk operations are counted before they start: chunk by chunk, as they
are worked off afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from django_jobqueue.domain.states import BulkState
from django_jobqueue.domain.throttle import Throttle
from django_jobqueue.store.bulk import operation_rows
from django_jobqueue.store.bulk.chunk import Chunk
from django_jobqueue.store.bulk.count_jobs import count_chunk
from django_jobqueue.store.connection import DjangoDatabase

AT_ONCE: Final = 0.1  # seconds that whoever drafts an operation waits for


def step(id: UUID, *, max_rows: int, job: UUID | None = None) -> Chunk | None:
    """Count one chunk, in a transaction of its own; None if there is nothing to count,
    the work has begun, or another job than this one counts a draft.

    ``max_rows`` bounds the rows that are looked at.
    """
    db = DjangoDatabase()

    def count() -> Chunk | None:
        operation = operation_rows.lock(db, id)
        if operation is None or operation.counted.over or operation.cursor is not None:
            return None
        if operation.state not in (BulkState.DRAFT, *operation_rows.ACTIVE):
            return None
        is_draft = operation.state == BulkState.DRAFT
        if job is not None and not (is_draft and operation.job_id == job):
            return None
        counted = count_chunk(db, operation, max_rows=max_rows)
        operation_rows.set_counted(db, id, counted)
        examined = counted.examined - operation.counted.examined
        return Chunk(examined=examined, over=counted.over)

    return db.in_transaction(count)


def count_for(
    id: UUID, seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> None:
    """Count chunks for about so long, or until all is counted; none that would
    take longer."""
    now = began = clock()
    end = now + seconds
    throttle = Throttle(None, now)
    while now + 2 * (now - began) < end:  # the next one is up to twice as large
        done = step(id, max_rows=throttle.size)
        if done is None or done.over:
            return
        began, now = now, clock()
        throttle.did(changed=0, seconds=now - began, now=now)
