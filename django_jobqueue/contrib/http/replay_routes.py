"""Replay one job, and change it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Body

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import schemas
from django_jobqueue.contrib.http.access import (
    VIEW,
    caller_of,
    may_do,
    may_read,
    may_read_data,
    refused,
)
from django_jobqueue.contrib.http.endpoint import answer, does, endpoint
from django_jobqueue.contrib.http.idempotency import KEY_HEADER, id_of_key
from django_jobqueue.contrib.http.job_objects import (
    contents_of,
    job_object,
    parse_job_id,
)
from django_jobqueue.contrib.http.option_bounds import check_bounds
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.exceptions import JobChanged, JobNotFound
from django_jobqueue.store.rows import Job
from django_jobqueue.text.redaction import MASK
from django_jobqueue.verbs.jobs import REPLAY, RESCHEDULE

EDIT: Final = "jobqueue.edit_job_data"
ONE: Final = ("invalid_prefix", "invalid_uuid", "job_not_found")

Replay = Annotated[schemas.Replay | None, Body(None)]


@does(
    REPLAY,
    "/v1/jobs/{id}/replay",
    answers={201: schemas.Job},
    problems=(*ONE, "invalid_replay_attempt", "job_type_not_found"),
    headers=(KEY_HEADER,),
)
def replay(request: HttpRequest, id: schemas.PathId, body: Replay) -> HttpResponse:
    """Enqueue an archived job again, as a new job."""
    return _replay(request, id, None, body)


@does(
    REPLAY,
    "/v1/jobs/{job_type}/{id}/replay",
    answers={201: schemas.Job},
    problems=(*ONE, "invalid_replay_attempt", "job_type_not_found"),
    headers=(KEY_HEADER,),
)
def replay_of_type(
    request: HttpRequest, job_type: schemas.PathName, id: schemas.PathId, body: Replay
) -> HttpResponse:
    """Enqueue an archived job of this type again, as a new job."""
    return _replay(request, id, job_type, body)


@endpoint(
    "PATCH",
    "/v1/jobs/{job_type}/{id}",
    scope=Scope.OPERATE,
    permission=(f"jobqueue.{RESCHEDULE.right}", VIEW),
    answers={200: schemas.Job},
    problems=(*ONE, "not_queued", "job_changed", "duplicate_job"),
)
def change_job(
    request: HttpRequest,
    job_type: schemas.PathName,
    id: schemas.PathId,
    body: schemas.Changes,
) -> HttpResponse:
    """Change a waiting job: its data, time, priority or queue, all or nothing.

    With `if_data` nothing is changed if the job has other data by now.
    """
    job = job_of(request, id, job_type)
    moves = body.moves()
    if body.data is None and not moves:
        raise Problem("missing_parameter", "data, run_after, priority or queue")
    if body.queue is not None and not may_do(request, job.job_type, body.queue):
        raise refused(request, f"queue {body.queue!r}")
    check_bounds(caller_of(request), job.job_type, moves)
    by = caller_of(request).name
    with transaction.atomic(using=conf.database):
        if body.data is not None:
            _edit(request, job, body, by)
        if moves and not operations.reschedule(job.id, **moves, by=by):
            raise not_queued(job.id)
    return answer(200, shown_job(request, job.id), partial=True)


def _edit(request: HttpRequest, job: Job, body: schemas.Changes, by: str) -> None:
    """Change the data. Raises Problem, and JobChanged by what the caller can see: or
    each guess at a secret would be answered."""
    _check_edit(request, job.job_type, job.queue, body.data)
    expected = None
    if body.if_data is not None:
        if contents_of(job)["data"] != body.if_data:
            raise JobChanged(job.id)
        expected = to_json(job.data, limit=conf.http_max_body)
    operations.edit_data(job.id, body.data or {}, expected=expected, by=by)


def _check_edit(request: HttpRequest, job_type: str, queue: str, data: Any) -> None:
    """Raises Problem for a caller who may not see data and give others, as in the
    admin, and for data with masks in the place of secrets."""
    sees = may_read_data(caller_of(request), job_type=job_type, queue=queue)
    if not (sees and may_do(request, job_type, queue, permission=EDIT)):
        raise refused(request, "the data of jobs, which needs 'read-data', too")
    if MASK in json.dumps(data, ensure_ascii=False):
        raise Problem("invalid_parameter", f"data: write what {MASK} stands for.")


def _replay(
    request: HttpRequest, id: str, job_type: str | None, body: schemas.Replay | None
) -> HttpResponse:
    job = job_of(request, id, job_type)
    options: dict[str, Any] = {} if body is None else body.options()
    queue = options.get("queue") or job.queue
    if not may_do(request, job.job_type, queue):
        raise refused(request, f"queue {queue!r}")
    if "data" in options:
        _check_edit(request, job.job_type, queue, options["data"])
    caller = caller_of(request)
    check_bounds(caller, job.job_type, options)
    made = operations.replay(
        job.id, **options, new_id=id_of_key(request, job.id), by=caller.name
    )
    return answer(201, job_object(made, caller), partial=True)


def job_of(request: HttpRequest, id: str, job_type: str | None = None) -> Job:
    """The job, to which the caller may do this. Raises JobNotFound, Problem."""
    job = operations.get_job(parse_job_id(id))
    if job_type is not None and job.job_type != job_type:
        raise JobNotFound(job.id)
    if may_do(request, job.job_type, job.queue):
        return job
    if may_read(caller_of(request), job):
        raise refused(request, f"job type {job.job_type!r}")
    raise JobNotFound(job.id)  # as if there were none


def shown_job(request: HttpRequest, id: UUID) -> schemas.Job:
    """The job as it is now, as this caller may see it."""
    return job_object(operations.get_job(id), caller_of(request))


def not_queued(id: UUID) -> Problem:
    """The answer about a job that does not wait."""
    status = operations.get_job(id).status
    return Problem("not_queued", f"The job is {status}.")
