"""Records of jobs that run when they are enqueued: no table has them."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.domain.states import ArchivedStatus, AttemptEnd
from django_jobqueue.enqueueing.memory import memory
from django_jobqueue.store.reading.record import End, Record


def kept_here(id: UUID) -> Record | None:
    """The job with this id, as this process keeps it; None if it does not."""
    job = memory.find(id)
    if job is None:
        return None
    ends = []
    if job.status == ArchivedStatus.FAILED:
        end = End(
            number=job.attempts,
            end=AttemptEnd.FAILED,
            worker=job.worker,
            error_class=job.error_class,
            error_message=job.error_message,
            reason="",
            traceback="",
        )
        ends.append(end)
    return Record(
        job=job,
        first_start=job.started_at,
        last_start=job.started_at,
        ends=tuple(ends),
    )
