"""What waits, runs, fails and is paused now."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from django_jobqueue.contrib.http import schemas, worker_schemas
from django_jobqueue.contrib.http.access import (
    VIEW_QUEUE,
    require_all,
)
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.rooms import offer
from django_jobqueue.stats import current_state
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.verbs.columns import MoreRows

WINDOW: Final = 3_600.0  # seconds that failures are of
OVERVIEW: Final = "jobqueue.view_overview"


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
