"""Enqueue by hand: an operator makes a job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.enqueueing import by_name
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.rows import Job


@sync_only()
def enqueue(
    job_type: str,
    data: Mapping[str, Any],
    *,
    run_after: datetime | None = None,
    expires_at: datetime | None = None,
    priority: int | None = None,
    queue: str | None = None,
    id: UUID | None = None,
    using: str | None = None,
    by: str = "",
) -> Job:
    """Enqueue a job by the name of its type, as an operator does by hand.

    The options, and the errors, are those of ``django_jobqueue.enqueue``. A duplicate
    is always refused, with DuplicateJob: an operator shall know of it.
    """
    job = by_name.enqueue(
        job_type,
        data,
        run_after=run_after,
        expires_at=expires_at,
        priority=priority,
        queue=queue,
        id=id,
        enqueued_by=by or None,
        on_duplicate="raise",
        using=using,
    )
    record("enqueue", by, 1, {"id": str(job.id), "job_type": job.job_type}, using=using)
    return job
