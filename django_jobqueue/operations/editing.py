"""Edit data: a waiting job gets other data before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.exceptions import DuplicateJob, JobChanged, NotEditable
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import checked_data
from django_jobqueue.operations.finding import get_job
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import edit as store_edit
from django_jobqueue.store.rows import Job


@sync_only()
def edit_data(
    id: UUID | str,
    data: Mapping[str, Any],
    *,
    expected: str | None = None,
    using: str | None = None,
    by: str = "",
) -> Job:
    """Give a waiting job these data instead of its own, if they fit its handler.

    ``expected`` is the JSON text of the data that you saw: if they are others by now,
    nothing is changed. Raises JobNotFound, NotEditable if the job is running or over,
    JobChanged, InvalidArguments, DuplicateJob if another job has the unique key that
    comes of the data.
    """
    job = get_job(id, using=using)
    text = checked_data(job.job_type, data)
    db = DjangoDatabase(using)
    try:
        edited = db.in_transaction(lambda: store_edit.edit(db, job.id, text, expected))
    except IntegrityError:
        raise DuplicateJob(
            f"Nothing was changed: with these data, {job.job_type} would have the "
            "unique key of another job."
        ) from None
    if edited is None:
        raise NotEditable(job.id, get_job(job.id, using=using).status)
    if edited.status != "queued":
        raise NotEditable(job.id, edited.status)
    if not edited.is_done:
        raise JobChanged(job.id)
    record(
        "edit data", by, 1, {"id": str(job.id), "job_type": job.job_type}, using=using
    )
    return get_job(job.id, using=using)
