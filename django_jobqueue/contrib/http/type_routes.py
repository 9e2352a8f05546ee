"""Job types: lists, single ones, and those that no code declares."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import schemas, type_schemas
from django_jobqueue.contrib.http.access import (
    VIEW_TYPE,
    caller_of,
    may_do,
    require,
    require_each,
)
from django_jobqueue.contrib.http.cursors import read_cursor, write_cursor
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.contrib.http.job_objects import (
    forget_facts,
    is_job_id,
    job_type_object,
    unknown_job_type,
)
from django_jobqueue.contrib.http.list_routes import Cursor
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.domain.name_patterns import EVERY
from django_jobqueue.domain.policy import Policy
from django_jobqueue.models import JobType
from django_jobqueue.operations.declaring import declare_for_program
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase

MOST: Final = 1_000  # job types of a page
# That programs create, of those that the caller's token opens; and if that is all.
MOST_OF_SOME: Final = 1_000
MOST_OF_ALL: Final = 10_000
DEFAULT_QUEUE: Final = Policy().queue
CHANGE: Final = "jobqueue.change_jobtype"
DECLARED: Final = {200: type_schemas.JobType, 201: type_schemas.JobType}


@endpoint(
    "GET",
    "/v1/jobs",
    scope=Scope.READ,
    permission=VIEW_TYPE,
    answers={200: type_schemas.JobTypes},
    problems=("invalid_cursor",),
    tag="job types",
    also="/v2/job-types",
)
def list_job_types(request: HttpRequest, cursor: Cursor) -> HttpResponse:
    """List job types, the newest first."""
    of = ("job types",)
    page = job_types.newest(
        DjangoDatabase(),
        caller_of(request).job_types,
        MOST,
        read_cursor(cursor, of, str),
    )
    rows = JobType.objects.using(conf.database).in_bulk([name for _, name in page])
    shown = [job_type_object(rows[name]) for _, name in page if name in rows]
    following = write_cursor(page[-1], of) if len(page) == MOST else None
    return answer(200, type_schemas.JobTypes(job_types=shown, cursor=following))


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


# For the room of remote workers, which do the jobs of these types.
creating = endpoint(
    "POST",
    "/v1/jobs",
    scope=Scope.TYPES,
    permission=(CHANGE, VIEW_TYPE),
    answers=DECLARED,
    problems=("declared_in_code", "too_many_job_types"),
    tag="job types",
    also="/v2/job-types",
)


def create_job_type(
    request: HttpRequest, body: type_schemas.NewJobType
) -> HttpResponse:
    """Create a job type that no code declares: remote workers do its jobs.

    Sent again it changes the job type to what the body says.
    """
    rows = JobType.objects.using(conf.database).filter(pk=body.key)
    queues = {*rows.values_list("queue", flat=True)}
    require_each(request, [body.key], [body.queue or DEFAULT_QUEUE, *queues])
    if not queues:
        _check_room(request)
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


def _check_room(request: HttpRequest) -> None:
    """Raises Problem if the caller's token opens as many job types as programs may
    create: every worker reads all of them."""
    most = MOST_OF_ALL if may_do(request, EVERY, None) else MOST_OF_SOME
    patterns = caller_of(request).job_types
    if job_types.count_remote(DjangoDatabase(), patterns, most) >= most:
        detail = f"Your token opens {most:,} job types, so it creates no other."
        raise Problem("too_many_job_types", detail)
