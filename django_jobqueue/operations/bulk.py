"""Bulk operations: one verb on all jobs of a selection, worked off in the background.

``draft`` freezes which jobs it is about and counts them, ``start`` lets workers begin.
Each of the others returns whether it was this call that changed the operation, so that
a second click, or a second operator, does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id, new_id
from django_jobqueue.domain.states import BulkKind, BulkState
from django_jobqueue.enqueueing.by_name import enqueue
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations import bulk_counting, failure_groups
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import check_number, checked_options
from django_jobqueue.search.selection import FIELDS, Selection, Table, Term, ValueType
from django_jobqueue.store.bulk import operation_rows
from django_jobqueue.store.bulk.operation_rows import Operation, Options
from django_jobqueue.store.bulk.skips import allowed, planned
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text.redaction import MASK, mask_at

Id = UUID | str

TABLES: Final = {
    BulkKind.REPLAY: Table.ARCHIVED,
    BulkKind.PRUNE: Table.ARCHIVED,
    BulkKind.CANCEL: Table.QUEUED,
    BulkKind.RUN_NOW: Table.QUEUED,
    BulkKind.RESCHEDULE: Table.QUEUED,
}
COUNTING_PRIORITY: Final = 50
UNDOABLE: Final = (
    BulkState.PAUSED,
    BulkState.DONE,
    BulkState.STOPPED,
    BulkState.FAILED,
)


@sync_only()
def draft(
    kind: str,
    selection: Selection,
    *,
    reason: str = "",
    per_minute: int | None = None,
    by: str = "",
    here: bool = False,
    id: UUID | None = None,
    **options: Any,
) -> Operation:
    """Write down what is to be done, and to which jobs: those there are at this moment.

    ``kind`` is ``replay``, ``cancel``, ``run_now``, ``reschedule`` or ``prune``;
    ``per_minute`` bounds how many jobs are changed in a minute, and ``limit`` how many
    in all, the oldest first. The other options are ``queue``, ``priority`` and
    ``run_after`` for a replay or a reschedule, and for a replay those of
    ``replay_many``: ``max_attempts``, ``expires``, ``skip_replayed`` and
    ``skip_at_most_once``.
    With an ``id`` of your own that is there already, the operation is returned as it
    is. Nothing happens to the jobs before ``start``. Many jobs are counted by a worker,
    unless ``here``; ``total`` is None until they are. Raises InvalidArguments.
    """
    _check_kind(kind, selection)
    check_number("per_minute", per_minute)
    chosen = checked_options(Options(), **options)
    db = DjangoDatabase()
    key = id or new_id()
    is_new = operation_rows.draft(
        db,
        id=key,
        kind=kind,
        selection=selection,
        options=chosen,
        reason=reason,
        per_minute=per_minute,
        by=by,
    )
    if is_new:
        bulk_counting.count_for(key, math.inf if here else bulk_counting.AT_ONCE)
        if not get(key).counted.over:
            _let_count(db, key)
    return get(key)


@sync_only()
def count(id: Id) -> Operation:
    """Count the jobs of a draft here, to the end; returns it with its ``total``.

    A draft of many jobs is counted by a worker otherwise. Raises LookupError,
    InvalidArguments.
    """
    operation = get(id)
    bulk_counting.count_for(operation.id, math.inf)
    return get(operation.id)


@sync_only()
def start(
    id: Id,
    *,
    reason: str | None = None,
    per_minute: int | None = None,
    by: str = "",
    here: bool = False,
    **options: Any,
) -> bool:
    """Let workers begin with a draft; False if it is none (any more). With ``here`` the
    caller works it off instead, with ``bulk_steps.work_here``.

    What is given replaces what the draft says. No more jobs are changed than were
    counted; a prune starts only when they are. Raises InvalidArguments, LookupError.
    """
    operation = get(id)
    chosen = _chosen(operation, per_minute, options)
    db, job = DjangoDatabase(), None if here else new_id()

    def begin() -> bool:
        started = operation_rows.start(
            db,
            operation.id,
            job=job,
            options=chosen,
            reason=operation.reason if reason is None else reason,
            per_minute=per_minute or operation.per_minute,
            confirmed=allowed(operation, chosen),
        )
        if started and job:
            enqueue_job(operation.id, job)
        return started

    started = db.in_transaction(begin)
    if started:
        if chosen.resolves is not None:
            failure_groups.resolve([chosen.resolves], seen=operation.cutoff, by=by)
        begun = get(operation.id)
        record_operation("start", begun, by, _number(begun))
    return started


@sync_only()
def discard(id: Id) -> None:
    """Delete a draft; what has started stays."""
    operation_rows.discard(DjangoDatabase(), as_id(id))


@sync_only()
def pause(id: Id, *, by: str = "") -> bool:
    """Let it rest after the chunk at hand, until ``resume``."""
    return _move(id, operation_rows.ACTIVE, BulkState.PAUSED, "pause", by)


@sync_only()
def resume(id: Id, *, by: str = "") -> bool:
    """Let it go on where it is: after a pause or an error, or if its job is gone."""
    operation, db, job = get(id), DjangoDatabase(), new_id()
    states = list(operation_rows.RESUMABLE)
    if is_abandoned(operation):
        states += operation_rows.ACTIVE

    def go_on() -> bool:
        resumed = operation_rows.move(
            db, operation.id, states, BulkState.QUEUED, job=job
        )
        if resumed:
            enqueue_job(operation.id, job)
        return resumed

    resumed = db.in_transaction(go_on)
    if resumed:
        record_operation("resume", operation, by, 1)
    return resumed


@sync_only()
def stop(id: Id, *, by: str = "") -> bool:
    """End it after the chunk at hand; what it did stays. A draft is discarded so."""
    states = (BulkState.DRAFT, *operation_rows.OPEN)
    return _move(id, states, BulkState.STOPPED, "stop", by)


@sync_only()
def undo(id: Id, *, by: str = "") -> Operation:
    """Cancel the jobs that a replay created and that have not started.

    That is a bulk operation of its own, which is returned, started. Raises
    InvalidArguments for what is no replay, or is still at work.
    """
    made = draft_undo(id, by=by)
    start(made.id, by=by)
    return get(made.id)


@sync_only()
def draft_undo(id: Id, *, by: str = "") -> Operation:
    """The same, drafted: nothing happens before ``start``."""
    operation = get(id)
    if operation.kind != BulkKind.REPLAY:
        raise InvalidArguments(f"A {operation.kind} cannot be undone.")
    if operation.state not in UNDOABLE:
        raise InvalidArguments("It is still at work: pause or stop it first.")
    waiting = Selection(
        Table.QUEUED, (Term("operation", operation.id), Term("attempts", 0))
    )
    return draft(BulkKind.CANCEL, waiting, reason="undone", by=by, undo_of=operation.id)


@sync_only()
def get(id: Id) -> Operation:
    """The bulk operation with this id. Raises LookupError, InvalidArguments."""
    operation = operation_rows.read(DjangoDatabase(), as_id(id))
    if operation is None:
        raise LookupError(f"There is no bulk operation {id}.")
    return operation


@sync_only()
def newest(most: int) -> list[Operation]:
    """The newest bulk operations, at most so many, the newest first."""
    return operation_rows.newest(DjangoDatabase(), most)


def is_abandoned(operation: Operation) -> bool:
    """Whether it should be at work, or be counted, and the job that does it is gone:
    cancelled, perhaps. Nobody can tell whether a command that runs an operation is
    still there; it does no harm if a worker joins in."""
    active = operation.state in operation_rows.ACTIVE
    counting = operation.state == BulkState.DRAFT and not operation.counted.over
    if operation.job_id is None:
        return active
    if not (active or counting):
        return False
    return not operation_rows.is_queued(DjangoDatabase(), operation.job_id)


def options_of(stored: Mapping[str, Any]) -> Options:
    """The options of an operation, as its row has them."""
    return Options.from_json(stored)


def enqueue_job(operation: UUID, job: UUID, **when: Any) -> None:
    """Enqueue the job that works an operation off."""
    enqueue(operation_rows.JOB_TYPE, {"operation": str(operation)}, id=job, **when)


def filter_text(selection: Selection, *, shows_contents: bool = True) -> str:
    """Which jobs, in a line for the log, secrets masked; without ``shows_contents``
    also values of data and texts of errors."""
    parts = []
    for term in selection.terms:
        value = term.value
        name = term.field
        is_data = FIELDS[term.field].value_type is ValueType.JSON
        if is_data:
            name = ".".join((name, *term.path))
            value = mask_at(term.path, value)
        elif isinstance(value, tuple):
            value = ",".join(map(str, value))
        if not shows_contents and (is_data or name == "text"):
            value = MASK
        parts.append(f"{name}{term.operator}{value}")
    return f"{selection.table}: {' '.join(parts) or 'all'}"


def _check_kind(kind: str, selection: Selection) -> None:
    """Raises InvalidArguments for what cannot be done with these jobs."""
    if selection.nothing:
        raise InvalidArguments("This selects no jobs: a filter was not understood.")
    if kind not in BulkKind.values:
        kinds = ", ".join(BulkKind.values)
        raise InvalidArguments(f"{kind!r} is no bulk operation; there are {kinds}.")
    if TABLES[BulkKind(kind)] is not selection.table:
        raise InvalidArguments(f"There is no {kind} of {selection.table} jobs.")


def _chosen(
    operation: Operation, per_minute: int | None, given: dict[str, Any]
) -> Options:
    """The options it starts with. Raises InvalidArguments for what cannot start so."""
    check_number("per_minute", per_minute)
    chosen = checked_options(operation.options, **given)
    if operation.kind == BulkKind.RESCHEDULE and not chosen.moves:
        raise InvalidArguments("A reschedule needs run_after, priority or queue.")
    if operation.kind == BulkKind.PRUNE and not operation.counted.over:
        raise InvalidArguments(
            "A prune starts when its jobs are counted: see total, or call bulk.count."
        )
    return chosen


def _let_count(db: DjangoDatabase, id: UUID) -> None:
    """Let a worker count it, before it does the jobs of the project: somebody looks at
    the page and waits."""
    job = new_id()

    def hand() -> None:
        operation_rows.set_job(db, id, job)
        enqueue_job(id, job, priority=COUNTING_PRIORITY)

    db.in_transaction(hand)


def _number(operation: Operation) -> int:
    """How many jobs it is about, as it started: those that are not skipped."""
    if not operation.counted.over:
        return operation.total or 0
    return planned(operation.kind, operation.counted, operation.options)[0]


def _move(id: Id, states: Any, to: str, verb: str, by: str) -> bool:
    operation = get(id)
    moved = operation_rows.move(DjangoDatabase(), operation.id, states, to)
    if moved:
        record_operation(verb, operation, by, 1)
    return moved


def record_operation(verb: str, operation: Operation, by: str, count: int) -> None:
    """Tell what was done with an operation, and which jobs it is about."""
    details = {
        "operation": str(operation.id),
        "filter": filter_text(operation.selection),
        "jobs": operation.total,
        "reason": operation.reason,
    }
    record(f"{verb} bulk {operation.kind}", by, count, details)
