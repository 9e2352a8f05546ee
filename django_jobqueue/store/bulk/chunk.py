"""One chunk of a bulk operation: the next jobs after its cursor, and what is done with
them.

The caller's transaction holds all of it. The effect on the jobs and the new place of
the cursor are committed together, so each job is handled once, whatever dies meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.states import BulkKind, WorkState
from django_jobqueue.store.bulk import operation_rows
from django_jobqueue.store.bulk.operation_rows import Operation
from django_jobqueue.store.bulk.skips import left_out
from django_jobqueue.store.bulk.window import Values, pin, window
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.control.cancel import cancel
from django_jobqueue.store.control.prune import prune_ids
from django_jobqueue.store.control.replay import replay
from django_jobqueue.store.control.reschedule import reschedule
from django_jobqueue.store.selection import condition
from django_jobqueue.store.work_rows import REFUSED, Chunk, apply_to_others

UNCONFIRMED: Final = "unconfirmed"  # the reason of those beyond the confirmed number

# Between the look and now a worker may have taken one: what is changed is what is
# still selected, under a lock.
HOLD: Final = """
SELECT id,
       CASE WHEN NOT %(running_too)s AND status <> 'queued' THEN 'running'
            WHEN expires_at <= %(run_after)s::timestamptz THEN 'expires' END
  FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[]) AND {condition}
 ORDER BY id
   FOR UPDATE OF jobqueue_queuedjob {busy}
"""


def chunk(
    db: DjangoDatabase,
    operation: Operation,
    *,
    max_rows: int,
    most: int | None = None,
    in_parts: bool = False,
) -> Chunk:
    """Handle the next jobs of an operation that this transaction has locked.

    ``max_rows``: how many rows are examined; ``most``: how many jobs are handled;
    ``in_parts``: leave out those that the database refuses to change. No more jobs are
    changed than were confirmed: where there is another one, the operation stops.
    """
    pin(db)
    most = max_rows if most is None else most
    scanned = window(db, operation, operation.cursor, max_rows=max_rows, most=most)
    ids, skipped = _sifted(db, operation, scanned.wanted)
    ids, beyond = _within(operation.room, ids)
    done, refused = _done(db, operation, ids, in_parts=in_parts)
    changed, asked = (sum(numbers) for numbers in zip((0, 0), *done, strict=True))
    skipped = _with(skipped, "changed", len(ids) - len(refused) - changed)
    skipped = _with(skipped, REFUSED, len(refused))
    skipped = _with(skipped, UNCONFIRMED, len(beyond))
    over = scanned.at_end or bool(beyond)
    to = WorkState.DONE if over else WorkState.RUNNING
    operation_rows.progress(
        db,
        operation,
        WorkState.STOPPED if beyond else to,
        changed=changed,
        skipped=skipped,
        cursor=scanned.cursor,
    )
    return Chunk(
        examined=scanned.examined,
        changed=changed,
        asked=asked,
        skipped=skipped,
        over=over,
    )


def _within(room: int | None, ids: list[UUID]) -> tuple[list[UUID], list[UUID]]:
    """The confirmed jobs, and those that have joined since."""
    return (ids, []) if room is None else (ids[:room], ids[room:])


Sifted = tuple[list[UUID], Counter[str]]  # those to be changed; why others are not


def _sifted(db: Database, operation: Operation, ids: list[UUID]) -> Sifted:
    if not ids:
        return [], Counter()
    match operation.kind:
        case BulkKind.REPLAY | BulkKind.PRUNE:
            return _judged(db, operation, ids)
        case BulkKind.CANCEL:
            return _held(db, operation, ids, running_too=True)
        case BulkKind.RUN_NOW:
            return _held(db, operation, ids)
        case BulkKind.RESCHEDULE:
            return _held(db, operation, ids, run_after=operation.options.run_after)
    raise ValueError(f"A bulk operation cannot {operation.kind!r}.")


def _judged(db: Database, operation: Operation, ids: list[UUID]) -> Sifted:
    """Without those that are skipped for what is known of them. No row is locked: the
    archive does not change, and what is gone is told by the verb."""
    skipped = left_out(
        db,
        operation.kind,
        ids,
        operation.options,
        cutoff=operation.cutoff,
        horizon=operation.horizon,
    )
    return [id for id in ids if id not in skipped], Counter(skipped.values())


def _held(
    db: Database,
    operation: Operation,
    ids: list[UUID],
    *,
    running_too: bool = False,
    run_after: datetime | None = None,
) -> Sifted:
    """Lock those that are still selected; a job that is just being claimed is waited
    for only if it may run."""
    values = Values()
    statement = HOLD.format(
        condition=condition(operation.selection, values),
        busy="" if running_too else "SKIP LOCKED",
    )
    params = {"ids": ids, "running_too": running_too, "run_after": run_after}
    rows: list[tuple[Any, ...]] = db.fetch(statement, {**values.params, **params})
    skipped = Counter(reason for _, reason in rows if reason)
    held = [id for id, reason in rows if not reason]
    return held, _with(skipped, "changed", len(ids) - len(rows))


def _done(
    db: DjangoDatabase, operation: Operation, ids: list[UUID], *, in_parts: bool
) -> tuple[list[tuple[int, int]], list[UUID]]:
    """Do it; returns the numbers of each part, and those that were refused."""
    if not ids:
        return [], []
    if not in_parts:
        return [_changed(db, operation, ids)], []
    return apply_to_others(db, ids, lambda part: _changed(db, operation, part))


def _changed(
    db: Database, operation: Operation, ids: Sequence[UUID]
) -> tuple[int, int]:
    """Do it; returns with how many jobs it was done, and how many of them are asked to
    stop."""
    options = operation.options
    match operation.kind:
        case BulkKind.REPLAY:
            by = operation.created_by
            return len(replay(db, ids, options, by=by, operation=operation.id)), 0
        case BulkKind.PRUNE:
            return len(prune_ids(db, ids)), 0
        case BulkKind.CANCEL:
            by = operation.created_by
            reason = operation.reason or (f"cancelled by {by}" if by else "cancelled")
            done = cancel(db, ids, reason=reason)
            return len(done.archived) + len(done.asked), len(done.asked)
        case BulkKind.RUN_NOW:
            return len(reschedule(db, ids, now=True)), 0
        case BulkKind.RESCHEDULE:
            moved = reschedule(
                db,
                ids,
                run_after=options.run_after,
                priority=options.priority,
                queue=options.queue,
            )
            return len(moved), 0
    raise ValueError(f"A bulk operation cannot {operation.kind!r}.")


def _with(skipped: Counter[str], reason: str, number: int) -> Counter[str]:
    """Add this many for this reason."""
    if number:
        skipped[reason] += number
    return skipped
