"""The chunks of an erasure: a draft counts its rows as they are changed afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from django_jobqueue.domain.states import BulkState
from django_jobqueue.domain.throttle import Throttle
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.erasing import erasure_rows
from django_jobqueue.store.erasing.erase_chunk import Done, chunk

AT_ONCE: Final = 0.4  # seconds that whoever searches waits for


def step(id: UUID, *, max_rows: int, job: UUID | None = None) -> Done | None:
    """Do one chunk, in a transaction of its own: of a draft count rows, of what was
    started change them. None if there is nothing to do, or another job than this one
    does it."""
    db = DjangoDatabase()

    def work() -> Done | None:
        erasure = erasure_rows.lock(db, id)
        if erasure is None:
            return None
        is_draft = erasure.state == BulkState.DRAFT
        if is_draft and erasure.total is not None:
            return None
        if not is_draft and erasure.state not in erasure_rows.ACTIVE:
            return None
        if job is not None and erasure.job_id != job:
            return None
        return chunk(db, erasure, max_rows=max_rows)

    return db.in_transaction(work)


def work_for(
    id: UUID, seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> None:
    """Go on for about so long, or until a pass is done."""
    now = clock()
    end = now + seconds
    throttle = Throttle(None, now)
    while now < end:
        done = step(id, max_rows=throttle.size)
        if done is None or done.over or done.pause:
            return
        began, now = now, clock()
        throttle.did(changed=0, seconds=now - began, now=now)
