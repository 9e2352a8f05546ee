"""Bulk operations: one verb on all jobs that a search selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from django_jobqueue.contrib.http import schemas
from django_jobqueue.contrib.http.access import (
    VIEW_OPERATION,
    caller_of,
    may_do,
    may_read_data,
    refused,
    require,
    require_all,
    sensitive_of,
    visible,
)
from django_jobqueue.contrib.http.endpoint import answer, does, endpoint
from django_jobqueue.contrib.http.idempotency import KEY_HEADER, id_of_key
from django_jobqueue.contrib.http.list_routes import selection_of
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.domain.states import BulkKind, WorkState
from django_jobqueue.operations import bulk
from django_jobqueue.operations.bulk_rights import (
    START,
    UNBOUNDED,
    rights_to_draft,
    rights_to_start,
)
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.operation_rows import Operation
from django_jobqueue.store.bulk.skips import planned
from django_jobqueue.verbs.bulk_operations import STOP

MOST: Final = 100  # in the list
APP: Final = "jobqueue."


@endpoint(
    "POST",
    "/v1/operations",
    scope=Scope.OPERATE,
    permission=(APP + START, VIEW_OPERATION),
    answers={200: schemas.Operation, 202: schemas.Operation},
    headers=(KEY_HEADER,),
    problems=("too_many_operations",),
    tag="operations",
)
def start_operation(request: HttpRequest, body: schemas.NewOperation) -> HttpResponse:
    """Do something to all jobs that a search selects, in the background.

    It is about those that the caller's token opens. With `dry_run` the answer says how
    many there are, and nothing is done. Sent again with the same `Idempotency-Key`, it
    answers with the operation that is there.
    """
    table = bulk.TABLES[BulkKind(body.kind)]
    selection = selection_of(request, table, body.where)
    _require_named(request, selection)
    _require_rights(request, [*rights_to_draft(body.kind), f"view_{table}job"])
    by = caller_of(request).name
    of_key = id_of_key(request, "operation", body.model_dump_json())
    draft = bulk.draft(
        body.kind,
        selection,
        reason=body.reason or "",
        by=by,
        id=None if body.dry_run else of_key,
        by_worker=False,  # it is discarded, or started, in this request
        **body.options(),
    )
    if body.dry_run:
        bulk.discard(draft.id)
        return answer(200, _object(request, draft))
    if draft.state == WorkState.DRAFT:
        try:
            _require_rights(request, rights_to_start(draft))
        except Problem:
            bulk.discard(draft.id)
            raise
    bulk.start(draft.id, by=by)  # nothing happens to one that was started before
    return answer(202, _object(request, bulk.get(draft.id)))


@endpoint(
    "GET",
    "/v1/operations",
    scope=Scope.READ,
    permission=VIEW_OPERATION,
    answers={200: schemas.Operations},
    tag="operations",
)
def list_operations(request: HttpRequest) -> HttpResponse:
    """List the last 100 bulk operations, the newest first."""
    require_all(request)
    shown = [_object(request, operation) for operation in bulk.newest(MOST)]
    return answer(200, schemas.Operations(operations=shown))


@endpoint(
    "GET",
    "/v1/operations/{operation}",
    scope=Scope.READ,
    permission=VIEW_OPERATION,
    answers={200: schemas.Operation},
    problems=("operation_not_found",),
    tag="operations",
)
def get_operation(request: HttpRequest, operation: UUID) -> HttpResponse:
    """Get a bulk operation: how far it is."""
    return answer(200, _object(request, _get(request, operation)))


@does(
    STOP,
    "/v1/operations/{operation}/stop",
    answers={200: schemas.Operation},
    problems=("operation_not_found",),
    tag="operations",
)
def stop_operation(request: HttpRequest, operation: UUID) -> HttpResponse:
    """End a bulk operation; what it did stays."""
    bulk.stop(_get(request, operation).id, by=caller_of(request).name)
    return answer(200, _object(request, _get(request, operation)))


def _require_named(request: HttpRequest, selection: Selection) -> None:
    """Raises Problem for a job type or queue that the search names, and that the
    caller has nothing to do with: or "no jobs" would look like all done."""
    for job_type in selection.values("type"):
        require(request, job_type=job_type)
    for queue in selection.values("queue"):
        if not may_do(request, None, queue):
            raise refused(request, f"queue {queue!r}")


def _require_rights(request: HttpRequest, rights: Sequence[str]) -> None:
    """Raises Problem for a user without all of these permissions."""
    for right in rights:
        if not may_do(request, None, None, permission=APP + right):
            detail = f"The caller has no permission {right!r}."
            if right == UNBOUNDED:
                detail += " These are, or may be, most of all jobs: narrow the search."
            raise Problem("forbidden", detail)


def _get(request: HttpRequest, id: UUID) -> Operation:
    """An operation on jobs that the caller's token opens. Raises Problem."""
    try:
        operation = bulk.get(id)
    except LookupError:
        operation = None
    wanted = visible(caller_of(request))
    if operation and all(term in operation.selection.terms for term in wanted):
        return operation
    raise Problem("operation_not_found", f"There is no bulk operation {id}.")


def _object(request: HttpRequest, operation: Operation) -> schemas.Operation:
    total: Any = operation.total
    if total is None and operation.counted.over:
        total = planned(operation.kind, operation.counted, operation.options)[0]
    caller, selection = caller_of(request), operation.selection
    shows = may_read_data(caller)
    made: schemas.Operation = schemas.Operation(
        id=operation.id,
        kind=operation.kind,
        state=operation.state,
        where=bulk.filter_text(
            selection, sensitive=sensitive_of(caller, selection) if shows else None
        ),
        reason=operation.reason,
        per_minute=operation.per_minute,
        total=total,
        changed=operation.changed,
        skipped=dict(operation.skipped),
        created_by=operation.created_by,
    )
    return made
