"""One job, wherever it is: get it, and tell that its secrets are seen."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rows import Job


@sync_only()
def get_job(id: UUID | str, *, using: str | None = None) -> Job:
    """The job with this id, queued or archived. Raises JobNotFound,
    InvalidArguments.

    In the modes that run jobs at the enqueue, it finds only jobs of this process.
    """
    key = as_id(id)
    if conf.mode == "queue":
        job = store_find.find(DjangoDatabase(using), key)
    else:
        job = memory.find(key)
    if job is None:
        raise JobNotFound(key)
    return job


@sync_only()
def reveal(id: UUID | str, *, by: str) -> None:
    """Record that somebody sees the secrets in this job's data. Raises
    InvalidArguments."""
    record("reveal", by, 1, {"id": str(as_id(id))})
