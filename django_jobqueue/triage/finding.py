"""One job, wherever it is."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.ids import as_id
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rows import Job


def get_job(id: UUID | str) -> Job:
    """The job with this id, queued or archived. Raises JobNotFound,
    InvalidArguments."""
    key = as_id(id)
    job = store_find.find(DjangoDatabase(), key)
    if job is None:
        raise JobNotFound(key)
    return job
