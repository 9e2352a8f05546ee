"""Bulk operations: one verb on all jobs of a selection, worked off in the background.

``draft`` freezes which jobs it is about and counts them, ``start`` lets workers begin.
Each of the others returns whether it was this call that changed the operation, so that
a second click, or a second operator, does no harm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import BulkKind, WorkState
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations import failure_groups
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import check_number, checked_options
from django_jobqueue.operations.chunked_work import ChunkedWork
from django_jobqueue.search.hidden_values import SensitiveKeys, shown_value
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk import chunk, operation_rows
from django_jobqueue.store.bulk.count_jobs import count_chunk
from django_jobqueue.store.bulk.operation_rows import OPERATIONS, Operation, Options
from django_jobqueue.store.bulk.skips import allowed, planned
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.work_rows import ACTIVE, OPEN, Chunk

Id = UUID | str

TABLES: Final = {
    BulkKind.REPLAY: Table.ARCHIVED,
    BulkKind.PRUNE: Table.ARCHIVED,
    BulkKind.CANCEL: Table.QUEUED,
    BulkKind.RUN_NOW: Table.QUEUED,
    BulkKind.RESCHEDULE: Table.QUEUED,
}
AT_ONCE: Final = 0.1  # seconds that whoever drafts an operation waits for
LONGEST_COUNT: Final = 5.0  # seconds, of what was started before it was counted
UNDOABLE: Final = (
    WorkState.PAUSED,
    WorkState.DONE,
    WorkState.STOPPED,
    WorkState.FAILED,
)


class BulkWork(ChunkedWork[Operation]):
    """Bulk operations: a draft is counted, what has started is done."""

    table = OPERATIONS
    noun = "bulk operation"
    plural = "bulk operations"
    argument = "operation"
    leaves_out = True
    stoppable = (WorkState.DRAFT, *OPEN)

    def goes_on(self, row: Operation) -> bool:
        """Also a draft that is not counted to the end."""
        is_draft = row.state == WorkState.DRAFT
        return row.state in ACTIVE or (is_draft and not row.counted.over)

    def chunk(
        self,
        db: DjangoDatabase,
        row: Operation,
        *,
        max_rows: int,
        most: int | None,
        **more: Any,
    ) -> Chunk | None:
        """Count or change the next jobs."""
        if row.state == WorkState.DRAFT:
            return self.count(db, row, max_rows=max_rows)
        return chunk.chunk(db, row, max_rows=max_rows, most=most, **more)

    def count(
        self,
        db: DjangoDatabase,
        row: Operation,
        *,
        max_rows: int,
        most: int | None = None,
    ) -> Chunk | None:
        """Count the next jobs; none once the work has begun."""
        if row.counted.over or row.cursor is not None:
            return None
        counted = count_chunk(db, row, max_rows=max_rows)
        operation_rows.set_counted(db, row.id, counted)
        examined = counted.examined - row.counted.examined
        return Chunk(examined=examined, over=counted.over)

    def count_for(
        self, id: UUID, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Count here for about so long, also what has started."""
        self.run_for(id, seconds, clock=clock, chunk=self.count)

    def before(self, row: Operation, clock: Callable[[], float]) -> None:
        """Count what was started before it was counted, as far as that is quick."""
        if row.state in ACTIVE and row.total is None and row.cursor is None:
            self.count_for(row.id, LONGEST_COUNT, clock)

    def per_minute(self, row: Operation) -> int | None:
        """As it was chosen."""
        return row.per_minute

    def record(self, verb: str, row: Operation, by: str, count: int) -> None:
        """With the filter, whose secrets are masked."""
        details = {
            "operation": str(row.id),
            "filter": filter_text(row.selection),
            "jobs": row.total,
            "reason": row.reason,
        }
        record(f"{verb} bulk {row.kind}", by, count, details)

    def record_end(self, row: Operation) -> None:
        """With the number of changed jobs."""
        self.record("end", row, row.created_by, row.changed)


WORK: Final = BulkWork()
get, pause, resume, stop, discard = (
    WORK.get,
    WORK.pause,
    WORK.resume,
    WORK.stop,
    WORK.discard,
)
is_abandoned, work_here = WORK.is_abandoned, WORK.work_here


@sync_only()
def draft(
    kind: str,
    selection: Selection,
    *,
    reason: str = "",
    per_minute: int | None = None,
    by: str = "",
    here: bool = False,
    by_worker: bool = True,
    id: UUID | None = None,
    **options: Any,
) -> Operation:
    """Draft an operation on the jobs that match at this moment.

    ``kind`` is ``replay``, ``cancel``, ``run_now``, ``reschedule`` or ``prune``;
    ``per_minute`` bounds how many jobs change per minute, and ``limit`` how many in
    all, the oldest first. The other options are ``queue``, ``priority`` and
    ``run_after`` for a replay or a reschedule, and for a replay those of
    ``replay_many``: ``max_attempts``, ``expires``, ``skip_replayed`` and
    ``skip_at_most_once``.
    If an operation with your ``id`` exists, it is returned as it is. Nothing happens to
    the jobs before ``start``. A worker counts many jobs, unless ``here``; without
    ``by_worker`` they stay uncounted. ``total`` is None until they are counted. Raises
    InvalidArguments, also if the person named in ``by`` has ten in progress.
    """
    _check_kind(kind, selection)
    check_number("per_minute", per_minute)
    chosen = checked_options(Options(), **options)
    db = DjangoDatabase()
    key = id or new_id()
    if not here and WORK.table.read(db, key) is None:
        WORK.check_room(by, key)
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
        WORK.run_for(key, math.inf if here else AT_ONCE)
        if by_worker and not get(key).counted.over:
            WORK.hand_over(key, job=None)
    return get(key)


@sync_only()
def count(id: Id) -> Operation:
    """Count the jobs of a draft here, to the end; returns it with its ``total``.

    Otherwise a worker counts a draft of many jobs. Raises LookupError,
    InvalidArguments.
    """
    operation = get(id)
    WORK.count_for(operation.id, math.inf)
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
    """Let workers start a draft; False if it is not a draft (any more). With ``here``
    the caller runs it instead, with ``bulk.work_here``.

    Options given here replace those of the draft. No more jobs are changed than were
    counted; a prune starts only when they are counted. Raises InvalidArguments, also if
    its creator has ten others in progress; and LookupError.
    """
    operation = get(id)
    chosen = _chosen(operation, per_minute, options)
    if not here and operation.state == WorkState.DRAFT:
        WORK.check_room(operation.created_by, operation.id)

    def begin(db: DjangoDatabase, job: UUID | None) -> bool:
        return operation_rows.start(
            db,
            operation.id,
            job=job,
            options=chosen,
            reason=operation.reason if reason is None else reason,
            per_minute=per_minute or operation.per_minute,
            confirmed=allowed(operation, chosen),
        )

    started = WORK.assign(operation.id, begin, here=here)
    if started:
        if chosen.resolves is not None:
            failure_groups.resolve([chosen.resolves], seen=operation.cutoff, by=by)
        begun = get(operation.id)
        WORK.record("start", begun, by, _number(begun))
    return started


@sync_only()
def undo(id: Id, *, by: str = "") -> Operation:
    """Cancel the jobs that a replay created and that have not started.

    Starts and returns another bulk operation. Raises InvalidArguments unless this one
    is a finished replay.
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
        raise InvalidArguments("It is still running: pause or stop it first.")
    waiting = Selection(
        Table.QUEUED, (Term("operation", operation.id), Term("attempts", 0))
    )
    return draft(BulkKind.CANCEL, waiting, reason="undone", by=by, undo_of=operation.id)


@sync_only()
def newest(most: int) -> list[Operation]:
    """The newest bulk operations, at most so many, the newest first."""
    return operation_rows.newest(DjangoDatabase(), most)


def run_here(id: UUID, seconds: float, *, by: str = "") -> int:
    """Do chunks for about so long, where no worker does; returns how many jobs were
    changed."""
    changed = WORK.run_for(id, seconds)
    WORK.record("run a step of", get(id), by, changed)
    return changed


def options_of(stored: Mapping[str, Any]) -> Options:
    """The options of an operation, as its row has them."""
    return Options.from_json(stored)


def filter_text(selection: Selection, *, sensitive: SensitiveKeys | None = None) -> str:
    """Describe the selected jobs in a line, with values of data and texts of errors
    masked, as in the log and the audit. For users who may see them, pass the keys of
    secrets as ``sensitive``."""
    parts = []
    for term in selection.terms:
        value = shown_value(term, sensitive)
        name = ".".join((term.field, *term.path))
        if isinstance(value, tuple):
            value = ",".join(map(str, value))
        parts.append(f"{name}{term.operator}{value}")
    return f"{selection.table}: {' '.join(parts) or 'all'}"


def _check_kind(kind: str, selection: Selection) -> None:
    """Raises InvalidArguments for what cannot be done with these jobs."""
    if selection.nothing:
        raise InvalidArguments("This selects no jobs: a filter is invalid.")
    if kind not in BulkKind.values:
        kinds = ", ".join(BulkKind.values)
        raise InvalidArguments(f"{kind!r} is not a bulk operation; there are {kinds}.")
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


def _number(operation: Operation) -> int:
    """How many jobs it is about, as it started: those that are not skipped."""
    if not operation.counted.over:
        return operation.total or 0
    return planned(operation.kind, operation.counted, operation.options)[0]
