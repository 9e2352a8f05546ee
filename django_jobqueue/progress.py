"""Reads the progress of jobs, for your own pages.

``progress_of(job.id)`` tells it to code that may know; ``token`` makes the word that
lets a browser ask for one job, and for nothing else.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.signing import TimestampSigner

from django_jobqueue.conf import conf
from django_jobqueue.domain.ids import Ids, as_id, keys_of
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import progress as store_progress
from django_jobqueue.store.reading.progress import Progress as Progress
from django_jobqueue.store.rows import Job

SALT: Final = "django_jobqueue.progress"


def progress_of(id: UUID | str, *, using: str | None = None) -> Progress:
    """Read the progress of this job, queued or archived: one query.

    ``using`` is the alias of another database than that of the jobs. Raises
    JobNotFound, InvalidArguments.
    """
    key = as_id(id)
    by_id = _read([key], using)
    if key not in by_id:
        raise JobNotFound(key)
    return by_id[key]


def progress_of_many(ids: Ids, *, using: str | None = None) -> dict[UUID, Progress]:
    """Read the progress of these jobs, by id: one query. A job that was pruned is
    missing. Raises InvalidArguments."""
    keys = keys_of(ids)
    return _read(keys, using) if keys else {}


async def aprogress_of(id: UUID | str, *, using: str | None = None) -> Progress:
    """``progress_of`` for async code."""
    return await sync_to_async(progress_of)(id, using=using)


async def aprogress_of_many(
    ids: Ids, *, using: str | None = None
) -> dict[UUID, Progress]:
    """``progress_of_many`` for async code."""
    return await sync_to_async(progress_of_many)(ids, using=using)


def token(id: UUID | str) -> str:
    """The token by which a browser may read this job's progress: signed with your
    ``SECRET_KEY``, and valid for ``PROGRESS_MAX_AGE`` seconds. Raises
    InvalidArguments."""
    return _signer().sign(as_id(id).hex)


def id_of(token: str) -> UUID:
    """The job that a token was made for. Raises Django's BadSignature, and its
    SignatureExpired for one that is too old."""
    seconds = conf.progress_max_age
    longest = None if seconds is None else timedelta(seconds=seconds)
    return UUID(_signer().unsign(token, max_age=longest))


def _read(ids: list[UUID], using: str | None) -> dict[UUID, Progress]:
    if conf.mode == "queue":
        return store_progress.progress(DjangoDatabase(using), ids)
    jobs = [memory.find(id) for id in ids]
    return {job.id: _of(job) for job in jobs if job is not None}


def _of(job: Job) -> Progress:
    """Only the state is known of a job that ran when it was enqueued."""
    return Progress(
        id=job.id,
        job_type=job.job_type,
        status=job.status,
        attempt=job.attempts,
        since=job.finished_at or job.started_at or job.run_after,
    )


def _signer() -> TimestampSigner:
    return TimestampSigner(salt=SALT)
