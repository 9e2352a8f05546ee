"""Job types: lists, single ones, and those that no code declares."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse

from django_jobqueue.conf import conf
from django_jobqueue.domain.api_tokens import Scope
from django_jobqueue.domain.policy import Policy
from django_jobqueue.http import schemas, type_schemas
from django_jobqueue.http.access import VIEW, VIEW_TYPE, caller_of, may, require
from django_jobqueue.http.endpoint import answer, endpoint
from django_jobqueue.http.job_objects import (
    forget_facts,
    is_job_id,
    job_type_object,
    unknown_job_type,
)
from django_jobqueue.http.problems import Problem
from django_jobqueue.models import JobType
from django_jobqueue.operations.declaring import declare_for_program

MOST_TYPES: Final = 10_000
DEFAULT_QUEUE: Final = Policy().queue
CHANGE: Final = "jobqueue.change_jobtype"
DECLARED: Final = {200: type_schemas.JobType, 201: type_schemas.JobType}


@endpoint(
    "GET",
    "/v1/jobs",
    scope=Scope.READ,
    permission=VIEW_TYPE,
    answers={200: type_schemas.JobTypes},
    tag="job types",
)
def list_job_types(request: HttpRequest) -> HttpResponse:
    """List job types, the newest first."""
    return _job_types(request)


@endpoint(
    "GET",
    "/v2/job-types",
    scope=Scope.READ,
    permission=VIEW_TYPE,
    answers={200: type_schemas.JobTypes},
    tag="job types",
)
def list_job_types_v2(request: HttpRequest) -> HttpResponse:
    """List job types, the newest first."""
    return _job_types(request)


@endpoint(
    "GET",
    "/v2/job-types/{job_type}",
    scope=Scope.READ,
    permission=VIEW_TYPE,
    answers={200: type_schemas.JobType},
    problems=("job_type_not_found",),
    tag="job types",
)
def get_job_type(request: HttpRequest, job_type: schemas.PathName) -> HttpResponse:
    """Get a job type with its policy in force."""
    require(request, job_type=job_type)
    row = JobType.objects.using(conf.database).filter(pk=job_type).first()
    if row is None:
        raise unknown_job_type(job_type, caller_of(request))
    return answer(200, job_type_object(row))


@endpoint(
    "POST",
    "/v1/jobs",
    scope=Scope.TYPES,
    permission=(CHANGE, VIEW_TYPE),
    answers=DECLARED,
    problems=("declared_in_code",),
    tag="job types",
)
def create_job_type(
    request: HttpRequest, body: type_schemas.NewJobType
) -> HttpResponse:
    """Create a job type that no code declares: remote workers do its jobs.

    Sent again it changes the job type to what the body says.
    """
    return _declare(request, body)


@endpoint(
    "POST",
    "/v2/job-types",
    scope=Scope.TYPES,
    permission=(CHANGE, VIEW_TYPE),
    answers=DECLARED,
    problems=("declared_in_code",),
    tag="job types",
)
def create_job_type_v2(
    request: HttpRequest, body: type_schemas.NewJobType
) -> HttpResponse:
    """Create a job type that no code declares: remote workers do its jobs.

    Sent again it changes the job type to what the body says.
    """
    return _declare(request, body)


def _declare(request: HttpRequest, body: type_schemas.NewJobType) -> HttpResponse:
    rows = JobType.objects.using(conf.database).filter(pk=body.key)
    for queue in {body.queue or DEFAULT_QUEUE, *rows.values_list("queue", flat=True)}:
        require(request, job_type=body.key, queue=queue)
    if is_job_id(body.key):
        raise Problem("invalid_parameter", "name: this is what the id of a job is.")
    is_new = declare_for_program(
        body.key,
        description=body.description,
        by=caller_of(request).name,
        **body.options(),
    )
    forget_facts()
    return answer(201 if is_new else 200, job_type_object(rows.get()))


def _job_types(request: HttpRequest) -> HttpResponse:
    caller = caller_of(request)
    rows = JobType.objects.using(conf.database).order_by("-created_at", "name")
    shown = [
        job_type_object(row)
        for row in rows[:MOST_TYPES]
        if may(caller, Scope.READ, VIEW, job_type=row.name)
    ]
    return answer(200, type_schemas.JobTypes(job_types=shown))
