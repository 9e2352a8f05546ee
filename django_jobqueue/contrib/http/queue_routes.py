"""Pause and resume queues and job types; what waits, runs and fails now."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Body

from django_jobqueue.contrib.http import schemas, worker_schemas
from django_jobqueue.contrib.http.access import (
    VIEW_QUEUE,
    caller_of,
    may_do,
    refused,
    require,
    require_all,
)
from django_jobqueue.contrib.http.api_tokens import Scope
from django_jobqueue.contrib.http.endpoint import answer, does, endpoint
from django_jobqueue.rooms import offer
from django_jobqueue.stats import current_state
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.verbs.columns import MoreRows
from django_jobqueue.verbs.declarations import On, Verb
from django_jobqueue.verbs.pauses import PAUSE, PAUSE_QUEUE, RESUME, RESUME_QUEUE

WINDOW: Final = 3_600.0  # seconds that failures are of
OVERVIEW: Final = "jobqueue.view_overview"

_PAUSED: Final = {200: schemas.Paused}
OF_TYPES: Final[dict[str, Any]] = {
    "answers": _PAUSED,
    "problems": ("job_type_not_found",),
    "tag": "job types",
}
OF_QUEUES: Final[dict[str, Any]] = {"answers": _PAUSED, "tag": "queues"}

Pause = Annotated[schemas.Pause | None, Body(None)]


@does(PAUSE, "/v1/jobs/{job_type}/pause", **OF_TYPES)
def pause_job_type(
    request: HttpRequest, job_type: schemas.PathName, body: Pause
) -> HttpResponse:
    """Stop the claiming of a job type; what runs goes on."""
    return _do(request, PAUSE, job_type, body)


@does(RESUME, "/v1/jobs/{job_type}/resume", **OF_TYPES)
def resume_job_type(request: HttpRequest, job_type: schemas.PathName) -> HttpResponse:
    """Let a job type be claimed again."""
    return _do(request, RESUME, job_type)


@does(PAUSE_QUEUE, "/v1/queues/{queue}/pause", **OF_QUEUES)
def pause_queue(
    request: HttpRequest, queue: schemas.PathName, body: Pause
) -> HttpResponse:
    """Stop the claiming from a queue; what runs goes on."""
    return _do(request, PAUSE_QUEUE, queue, body)


@does(RESUME_QUEUE, "/v1/queues/{queue}/resume", **OF_QUEUES)
def resume_queue(request: HttpRequest, queue: schemas.PathName) -> HttpResponse:
    """Let a queue be claimed from again."""
    return _do(request, RESUME_QUEUE, queue)


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
    more: MoreRows | None = offer("more_rows", "workers")
    rows = map(more.listing.as_object, more.read()) if more else ()
    listed = worker_schemas.Workers.model_validate(
        {
            "workers": [_worker(row) for row in stats.workers(DjangoDatabase())],
            "endpoints": [_endpoint(row) for row in rows],
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


def _do(
    request: HttpRequest, verb: Verb, name: str, body: schemas.Pause | None = None
) -> HttpResponse:
    """Pause or resume this job type or queue. Raises Problem."""
    if verb.on is On.JOB_TYPE:
        require(request, job_type=name, queue="*")
    elif not may_do(request, "*", name):  # a queue has jobs of every type
        raise refused(request, f"queue {name!r} and every job type")
    given = {"reason": body.reason or "", "resume_at": body.resume_at} if body else {}
    verb.function(name, **given, by=caller_of(request).name)
    return answer(200, schemas.Paused(name=name, is_paused=verb.name == PAUSE.name))


def _fields(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}


def _worker(row: stats.WorkerRow) -> dict[str, Any]:
    fields = _fields(row)
    memory = fields.pop("rss")
    del fields["id"], fields["end"], fields["listening"]
    return {**fields, "memory": memory, "is_alive": is_alive(row)}


def _endpoint(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": one["name"],
        "held_jobs": one["running"],
        "oldest": one["age"] if one["running"] else None,
        **one["endpoint"],
    }


def _failures() -> list[dict[str, Any]]:
    rows = [_fields(row) for row in stats.failures(DjangoDatabase(), WINDOW)]
    for row in rows:
        del row["message"]  # it may have data
    return rows
