"""Bulk operations: one verb on all jobs that a search selects."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from django_jobqueue.domain.api_tokens import Scope
from django_jobqueue.domain.states import BulkKind
from django_jobqueue.http import schemas
from django_jobqueue.http.access import caller_of, may_do, refused, require_all
from django_jobqueue.http.endpoint import answer, endpoint
from django_jobqueue.http.idempotency import KEY_HEADER, id_of_key
from django_jobqueue.http.list_routes import selection_of
from django_jobqueue.http.problems import Problem
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.operation_rows import Operation
from django_jobqueue.store.bulk.skips import planned

MOST: Final = 100  # in the list
START: Final = "jobqueue.start_bulkoperation"
VIEW_OPERATIONS: Final = "jobqueue.view_bulkoperation"
# What the admin asks for beside the permission to start one.
OF_VERBS: Final = {
    "replay": "jobqueue.replay_archivedjob",
    "cancel": "jobqueue.cancel_queuedjob",
    "run_now": "jobqueue.reschedule_queuedjob",
}


@endpoint(
    "POST",
    "/v1/operations",
    scope=Scope.OPERATE,
    permission=START,
    answers={200: schemas.Operation, 202: schemas.Operation},
    headers=(KEY_HEADER,),
    tag="operations",
)
def start_operation(request: HttpRequest, body: schemas.NewOperation) -> HttpResponse:
    """Do something to all jobs that a search selects, in the background.

    With `dry_run` the answer says how many there are, and nothing is done. Sent again
    with the same `Idempotency-Key`, it answers with the operation that is there.
    """
    selection = selection_of(bulk.TABLES[BulkKind(body.kind)], body.where)
    _require_selected(request, selection, OF_VERBS[body.kind])
    by = caller_of(request).name
    of_key = id_of_key(request, "operation", body.model_dump_json())
    draft = bulk.draft(
        body.kind,
        selection,
        reason=body.reason or "",
        by=by,
        id=None if body.dry_run else of_key,
        **body.options(),
    )
    if body.dry_run:
        bulk.discard(draft.id)
        return answer(200, _object(draft))
    bulk.start(draft.id, by=by)  # nothing happens to one that was started before
    return answer(202, _object(bulk.get(draft.id)))


@endpoint(
    "GET",
    "/v1/operations",
    scope=Scope.READ,
    permission=VIEW_OPERATIONS,
    answers={200: schemas.Operations},
    tag="operations",
)
def list_operations(request: HttpRequest) -> HttpResponse:
    """List the last 100 bulk operations, the newest first."""
    require_all(request)
    shown = [_object(operation) for operation in bulk.newest(MOST)]
    return answer(200, schemas.Operations(operations=shown))


@endpoint(
    "GET",
    "/v1/operations/{operation}",
    scope=Scope.READ,
    permission=VIEW_OPERATIONS,
    answers={200: schemas.Operation},
    problems=("operation_not_found",),
    tag="operations",
)
def get_operation(request: HttpRequest, operation: UUID) -> HttpResponse:
    """Get a bulk operation: how far it is."""
    require_all(request)
    return answer(200, _object(_get(operation)))


@endpoint(
    "POST",
    "/v1/operations/{operation}/stop",
    scope=Scope.OPERATE,
    permission=START,
    answers={200: schemas.Operation},
    problems=("operation_not_found",),
    tag="operations",
)
def stop_operation(request: HttpRequest, operation: UUID) -> HttpResponse:
    """End a bulk operation; what it did stays."""
    require_all(request)
    bulk.stop(_get(operation).id, by=caller_of(request).name)
    return answer(200, _object(_get(operation)))


def _require_selected(
    request: HttpRequest, selection: Selection, permission: str
) -> None:
    """Raises Problem unless the caller may do it to all jobs that there can be: of the
    job types and queues that the search names, or else of every one."""
    for job_type in selection.values("type") or ["*"]:
        for queue in selection.values("queue") or ["*"]:
            if not may_do(request, job_type, queue, permission=permission):
                raise refused(
                    Scope.OPERATE,
                    f"job type {job_type!r} in queue {queue!r}: name type: and queue: "
                    "in the search",
                )


def _get(id: UUID) -> Operation:
    try:
        return bulk.get(id)
    except LookupError:
        detail = f"There is no bulk operation {id}."
        raise Problem("operation_not_found", detail) from None


def _object(operation: Operation) -> schemas.Operation:
    total: Any = operation.total
    if total is None and operation.counted.over:
        total = planned(operation.kind, operation.counted, operation.options)[0]
    made: schemas.Operation = schemas.Operation(
        id=operation.id,
        kind=operation.kind,
        state=operation.state,
        where=bulk.filter_text(operation.selection),
        reason=operation.reason,
        per_minute=operation.per_minute,
        total=total,
        changed=operation.changed,
        skipped=dict(operation.skipped),
        created_by=operation.created_by,
    )
    return made
