"""Read one job, or wait for it; read job types."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import RootModel

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import schemas, type_schemas
from django_jobqueue.contrib.http.access import VIEW, caller_of, may_read, require
from django_jobqueue.contrib.http.callers import identity_of
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.contrib.http.job_objects import (
    is_job_id,
    job_object,
    job_type_object,
    parse_job_id,
    unknown_job_type,
)
from django_jobqueue.contrib.http.long_polls import long_poll
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.models import JobType
from django_jobqueue.store.rows import Job
from django_jobqueue.waiting import Waiting, until_over

Wait = Annotated[
    int,
    Query(
        0,
        ge=0,
        le=schemas.LONGEST_WAIT,
        description="Seconds to wait until the job is over.",
    ),
]


class JobOrType(RootModel[schemas.Job | type_schemas.JobType]):
    """A job, or a job type."""


@endpoint(
    "GET",
    "/v1/jobs/{job_type}/{id}",
    scope=Scope.READ,
    permission=VIEW,
    answers={200: schemas.Job},
    problems=("invalid_prefix", "invalid_uuid", "job_not_found"),
)
def get_job(
    request: HttpRequest,
    job_type: schemas.PathName,
    id: schemas.PathId,
    wait: Wait,
) -> HttpResponse:
    """Get a job of this type, queued or archived.

    With `wait` the answer comes when the job is over, or after this time, or at once
    where too many wait already: see its status.
    """
    require(request, job_type=job_type)
    return _job(request, parse_job_id(id), wait, job_type=job_type)


@endpoint(
    "GET",
    "/v1/jobs/{job_type}",
    scope=Scope.READ,
    permission=VIEW,
    answers={200: JobOrType},
    problems=("invalid_uuid", "job_not_found", "job_type_not_found"),
)
def get_job_or_type(
    request: HttpRequest, job_type: schemas.PathName, wait: Wait
) -> HttpResponse:
    """Get a job type by its name, or a job by its id alone."""
    if is_job_id(job_type):
        return _job(request, parse_job_id(job_type), wait)
    return _job_type(request, job_type)


def _job_type(request: HttpRequest, name: str) -> HttpResponse:
    require(request, job_type=name)
    row = JobType.objects.using(conf.database).filter(pk=name).first()
    if row is None:
        raise unknown_job_type(name, caller_of(request))
    return answer(200, job_type_object(row))


def _job(
    request: HttpRequest, id: UUID, wait: int, *, job_type: str | None = None
) -> HttpResponse:
    job = _visible(request, operations.get_job(id), job_type)
    if wait and not job.is_over:
        caller = identity_of(caller_of(request))
        job = _visible(request, _when_over(job, wait, caller), job_type)
    return answer(200, job_object(job, caller_of(request)), partial=True)


def _visible(request: HttpRequest, job: Job, job_type: str | None) -> Job:
    """The same job. Raises JobNotFound, as if there were none."""
    is_other = job_type is not None and job.job_type != job_type
    if is_other or not may_read(caller_of(request), job):
        raise JobNotFound(job.id)
    return job


def _when_over(job: Job, seconds: int, caller: str) -> Job:
    """The job when it is over, or after this time."""
    with long_poll(caller) as poll:
        if poll is None:
            return job
        waiting = Waiting(job.id, seconds)
        try:
            return until_over(waiting, poll.woken, lambda: poll.is_over)
        except TimeoutError:
            return operations.get_job(job.id)
