"""Pause and resume queues and job types; what waits, runs and fails now."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Body

from django_jobqueue import operations
from django_jobqueue.contrib.http import schemas, worker_schemas
from django_jobqueue.contrib.http.access import (
    VIEW_QUEUE,
    VIEW_TYPE,
    caller_of,
    may_do,
    refused,
    require,
    require_all,
)
from django_jobqueue.contrib.http.api_tokens import Scope
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.stats import current_state, endpoints
from django_jobqueue.stats.endpoints import EndpointState
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_alive

WINDOW: Final = 3_600.0  # seconds that failures are of
PAUSE_TYPE: Final = "jobqueue.pause_jobtype"
PAUSE_QUEUE: Final = "jobqueue.pause_queue"
OVERVIEW: Final = "jobqueue.view_overview"

Pause = Annotated[schemas.Pause | None, Body(None)]


@endpoint(
    "POST",
    "/v1/jobs/{job_type}/pause",
    scope=Scope.OPERATE,
    permission=(PAUSE_TYPE, VIEW_TYPE),
    answers={200: schemas.Paused},
    problems=("job_type_not_found",),
    tag="job types",
)
def pause_job_type(
    request: HttpRequest, job_type: schemas.PathName, body: Pause
) -> HttpResponse:
    """Stop the claiming of a job type; what runs goes on."""
    require(request, job_type=job_type, queue="*")
    operations.pause(job_type, **_options(body), by=caller_of(request).name)
    return answer(200, schemas.Paused(name=job_type, is_paused=True))


@endpoint(
    "POST",
    "/v1/jobs/{job_type}/resume",
    scope=Scope.OPERATE,
    permission=(PAUSE_TYPE, VIEW_TYPE),
    answers={200: schemas.Paused},
    problems=("job_type_not_found",),
    tag="job types",
)
def resume_job_type(request: HttpRequest, job_type: schemas.PathName) -> HttpResponse:
    """Let a job type be claimed again."""
    require(request, job_type=job_type, queue="*")
    operations.resume(job_type, by=caller_of(request).name)
    return answer(200, schemas.Paused(name=job_type, is_paused=False))


@endpoint(
    "POST",
    "/v1/queues/{queue}/pause",
    scope=Scope.OPERATE,
    permission=(PAUSE_QUEUE, VIEW_QUEUE),
    answers={200: schemas.Paused},
    tag="queues",
)
def pause_queue(
    request: HttpRequest, queue: schemas.PathName, body: Pause
) -> HttpResponse:
    """Stop the claiming from a queue; what runs goes on."""
    _require_queue(request, queue)
    by = caller_of(request).name
    operations.pause(queue, queues=True, **_options(body), by=by)
    return answer(200, schemas.Paused(name=queue, is_paused=True))


@endpoint(
    "POST",
    "/v1/queues/{queue}/resume",
    scope=Scope.OPERATE,
    permission=(PAUSE_QUEUE, VIEW_QUEUE),
    answers={200: schemas.Paused},
    tag="queues",
)
def resume_queue(request: HttpRequest, queue: schemas.PathName) -> HttpResponse:
    """Let a queue be claimed from again."""
    _require_queue(request, queue)
    operations.resume(queue, queues=True, by=caller_of(request).name)
    return answer(200, schemas.Paused(name=queue, is_paused=False))


@endpoint(
    "GET",
    "/v1/status",
    scope=Scope.READ,
    permission=OVERVIEW,
    answers={200: schemas.Status},
    tag="status",
)
def get_status(request: HttpRequest) -> HttpResponse:
    """Get what waits, runs, fails and is paused, as `jobqueue status` says."""
    require_all(request)
    present = current_state.read()
    status = schemas.Status(
        time=present.time,
        queues=[_fields(depth) for depth in present.depths],
        workers=[_worker(worker) for worker in present.workers],
        failures=_failures(),
        paused=[
            {
                "what": pause.what,
                "name": pause.name,
                "by": pause.by,
                "reason": pause.reason,
            }
            for pause in present.closed
        ],
    )
    return answer(200, status)


@endpoint(
    "GET",
    "/v1/queues",
    scope=Scope.READ,
    permission=VIEW_QUEUE,
    answers={200: schemas.Queues},
    tag="queues",
)
def list_queues(request: HttpRequest) -> HttpResponse:
    """List what waits and runs, by queue and job type; counts end at 10,000."""
    require_all(request)
    depths = stats.depths(DjangoDatabase())
    return answer(200, schemas.Queues(queues=[_fields(depth) for depth in depths]))


@endpoint(
    "GET",
    "/v1/workers",
    scope=Scope.READ,
    permission="jobqueue.view_worker",
    answers={200: worker_schemas.Workers},
    tag="status",
)
def list_workers(request: HttpRequest) -> HttpResponse:
    """List workers, and the endpoints that jobs are sent to.

    Workers that ended in the last ten minutes are listed, too. Endpoints are no
    workers: they claim nothing, and have the jobs that they were sent.
    """
    require_all(request)
    db = DjangoDatabase()
    listed = worker_schemas.Workers.model_validate(
        {
            "workers": [_worker(row) for row in stats.workers(db)],
            "endpoints": [_endpoint(state) for state in endpoints.read(db)],
        }
    )
    return answer(200, listed)


@endpoint(
    "GET",
    "/v1/failures",
    scope=Scope.READ,
    permission="jobqueue.view_failuregroup",
    answers={200: schemas.Failures},
    tag="status",
)
def list_failures(request: HttpRequest) -> HttpResponse:
    """List failed jobs of the last hour, by job type and error."""
    require_all(request)
    return answer(200, schemas.Failures(failures=_failures()))


def _require_queue(request: HttpRequest, queue: str) -> None:
    """A queue has jobs of every type. Raises Problem."""
    if not may_do(request, "*", queue):
        raise refused(request, f"queue {queue!r} and every job type")


def _options(body: schemas.Pause | None) -> dict[str, Any]:
    if body is None:
        return {}
    return {"reason": body.reason or "", "resume_at": body.resume_at}


def _fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def _worker(row: stats.WorkerRow) -> dict[str, Any]:
    fields = _fields(row)
    memory = fields.pop("rss")
    del fields["id"], fields["end"], fields["listening"]
    return {**fields, "memory": memory, "is_alive": is_alive(row)}


def _endpoint(state: EndpointState) -> dict[str, Any]:
    return {
        "name": state.name,
        "held_jobs": state.jobs,
        "oldest": state.oldest if state.jobs else None,
        **endpoints.answers_object(state),
    }


def _failures() -> list[dict[str, Any]]:
    rows = [_fields(row) for row in stats.failures(DjangoDatabase(), WINDOW)]
    for row in rows:
        del row["message"]  # it may have data
    return rows
