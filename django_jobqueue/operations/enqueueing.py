"""Enqueue by hand: an operator makes a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.enqueueing import by_name
from django_jobqueue.enqueueing.options import JobOptions
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.rows import Job


@sync_only()
def enqueue(
    job_type: str,
    data: Mapping[str, Any],
    *,
    by: str = "",
    **options: Unpack[JobOptions],
) -> Job:
    """Enqueue a job by the name of its type, as an operator does by hand.

    The options, and the errors, are those of ``django_jobqueue.enqueue``. A duplicate
    is always refused, with DuplicateJob: an operator shall know of it. So it takes no
    ``on_duplicate``, and ``by`` is who enqueues it.
    """
    given: dict[str, Any] = {**options}
    job = by_name.enqueue(
        job_type, data, enqueued_by=by or None, on_duplicate="raise", **given
    )
    details = {"id": str(job.id), "job_type": job.job_type}
    record("enqueue", by, 1, details, using=given.get("using"))
    return job
