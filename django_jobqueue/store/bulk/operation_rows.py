"""Drafts and reads bulk operations, and moves them from state to state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.operation_options import Options as Options
from django_jobqueue.domain.registry import BULK
from django_jobqueue.domain.states import BulkState
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.draft_counts import Counted
from django_jobqueue.store.connection import Database
from django_jobqueue.text.json_reading import read_json

JOB_TYPE: Final = BULK  # of the jobs that work operations off

# Those that have neither ended nor are yet to begin.
ACTIVE: Final = (BulkState.QUEUED, BulkState.RUNNING)
OPEN: Final = (*ACTIVE, BulkState.PAUSED, BulkState.FAILED)
RESUMABLE: Final = (BulkState.PAUSED, BulkState.FAILED)

# The horizon tells jobs that joined later, though they ended before the cutoff: their
# transaction was not over yet. It is the first transaction that is open now. Whose own
# transaction wrote before cannot tell its own jobs from those, and has none.
DRAFT: Final = """
INSERT INTO jobqueue_bulkoperation (
       id, kind, selection, options, reason, per_minute, created_by, horizon)
VALUES (%(id)s, %(kind)s, %(selection)s::jsonb, %(options)s::jsonb, %(reason)s,
        %(per_minute)s, %(by)s,
        CASE WHEN pg_current_xact_id_if_assigned() IS NULL
             THEN pg_snapshot_xmin(pg_current_snapshot())::xid::text ELSE '' END)
    ON CONFLICT (id) DO NOTHING
RETURNING id
"""

_SELECT: Final = """
SELECT id, kind, state, selection::text, cutoff, options::text, reason, per_minute,
       total, seen, changed, skipped::text, cursor::text, created_by, job_id,
       horizon, counted::text, confirmed
  FROM jobqueue_bulkoperation
"""
READ: Final = f"{_SELECT} WHERE id = %(id)s"
LOCK: Final = f"{_SELECT} WHERE id = %(id)s FOR UPDATE"
NEWEST: Final = f"{_SELECT} ORDER BY created_at DESC, id DESC LIMIT %(most)s"

# Compare and set: of two clicks, or two operators, one finds the state that it needs.
# What cannot be taken back never starts uncounted, whoever asks.
START: Final = """
UPDATE jobqueue_bulkoperation
   SET state = 'queued', options = %(options)s::jsonb, reason = %(reason)s,
       per_minute = %(per_minute)s, job_id = %(job)s, confirmed = %(confirmed)s
 WHERE id = %(id)s AND state = 'draft'
   AND (kind <> 'prune' OR %(confirmed)s::bigint IS NOT NULL)
RETURNING id
"""
MOVE: Final = """
UPDATE jobqueue_bulkoperation
   SET state = %(to)s::text, error = %(error)s,
       job_id = coalesce(%(job)s::uuid, job_id),
       finished_at = CASE WHEN %(to)s::text IN ('stopped', 'failed')
                          THEN clock_timestamp()
                     END
 WHERE id = %(id)s AND state = ANY (%(states)s::text[])
RETURNING id
"""
HAND_OVER: Final = """
UPDATE jobqueue_bulkoperation
   SET job_id = %(to)s
 WHERE id = %(id)s AND job_id = %(job)s AND state IN ('draft', 'queued', 'running')
RETURNING id
"""
PROGRESS: Final = """
UPDATE jobqueue_bulkoperation
   SET state = coalesce(%(state)s::text, 'running'),
       started_at = coalesce(started_at, clock_timestamp()),
       progress_at = clock_timestamp(),
       finished_at = CASE WHEN %(state)s::text IS NOT NULL
                          THEN clock_timestamp() END,
       seen = seen + %(seen)s, changed = changed + %(changed)s,
       skipped = %(skipped)s::jsonb, cursor = %(cursor)s::jsonb
 WHERE id = %(id)s
"""
SET_COUNTED: Final = """
UPDATE jobqueue_bulkoperation
   SET counted = %(counted)s::jsonb, total = %(total)s
 WHERE id = %(id)s
"""
SET_JOB: Final = """
UPDATE jobqueue_bulkoperation SET job_id = %(job)s WHERE id = %(id)s
"""
DISCARD: Final = """
DELETE FROM jobqueue_bulkoperation WHERE id = %(id)s AND state = 'draft'
"""
# One that waits to be resumed, or was only drafted, is forgotten after the same time.
DROP: Final = """
DELETE FROM jobqueue_bulkoperation
 WHERE id IN (SELECT id FROM jobqueue_bulkoperation
               WHERE state <> ALL (%(active)s::text[])
                 AND coalesce(finished_at, progress_at, started_at, created_at)
                     < clock_timestamp() - %(keep)s * interval '1 second'
               LIMIT %(batch)s
                 FOR UPDATE SKIP LOCKED)
RETURNING id
"""
BATCH: Final = 1_000
IS_QUEUED: Final = "SELECT EXISTS (SELECT FROM jobqueue_queuedjob WHERE id = %(id)s)"


class Operation(NamedTuple):
    """A bulk operation as it was when it was read."""

    id: UUID
    kind: str  # of states.BulkKind
    state: str  # of states.BulkState
    selection: Selection
    cutoff: datetime
    options: Options
    reason: str
    per_minute: int | None  # None: no limit
    total: int | None  # jobs that it was about when it began; None: not counted
    seen: int
    changed: int
    skipped: Mapping[str, int]  # by reason
    cursor: Sequence[str] | None
    created_by: str
    job_id: UUID | None
    horizon: str  # of transactions, by its number; empty: none
    counted: Counted
    confirmed: int | None  # the most jobs to change; None: unlimited

    @property
    def room(self) -> int | None:
        """The number of jobs that it may still change; None is unlimited."""
        if self.confirmed is None:
            return None
        return max(0, self.confirmed - self.changed)


def draft(
    db: Database,
    *,
    id: UUID,
    kind: str,
    selection: Selection,
    options: Options,
    reason: str,
    per_minute: int | None,
    by: str,
) -> bool:
    """Insert a draft, of which nothing is counted; its cutoff is the database's now.
    False if there is an operation with this id."""
    params = {
        "id": id,
        "kind": kind,
        "selection": json.dumps(selection.to_json()),
        "options": options.to_json(),
        "reason": reason,
        "per_minute": per_minute,
        "by": by,
    }
    return bool(db.fetch(DRAFT, params))


def read(db: Database, id: UUID) -> Operation | None:
    """The operation with this id; None if there is none."""
    return _one(db.fetch(READ, {"id": id}))


def newest(db: Database, most: int) -> list[Operation]:
    """The newest operations, at most so many, the newest first."""
    return [_operation(row) for row in db.fetch(NEWEST, {"most": most})]


def lock(db: Database, id: UUID) -> Operation | None:
    """Read it, and lock it until the end of this transaction."""
    return _one(db.fetch(LOCK, {"id": id}))


def start(
    db: Database,
    id: UUID,
    *,
    job: UUID | None,
    options: Options,
    reason: str,
    per_minute: int | None,
    confirmed: int | None,
) -> bool:
    """Draft → queued; False if it is no draft (any more), or a prune that is not
    ``confirmed``."""
    params = {
        "id": id,
        "job": job,
        "options": options.to_json(),
        "reason": reason,
        "per_minute": per_minute,
        "confirmed": confirmed,
    }
    return bool(db.fetch(START, params))


def move(
    db: Database,
    id: UUID,
    states: Sequence[str],
    to: str,
    *,
    job: UUID | None = None,
    error: str = "",
) -> bool:
    """One of these states → another; False if it is in none of them."""
    params = {"id": id, "states": list(states), "to": to, "job": job, "error": error}
    return bool(db.fetch(MOVE, params))


def hand_over(db: Database, id: UUID, *, job: UUID, to: UUID) -> bool:
    """Another job works it off from now on; False if this one does not."""
    return bool(db.fetch(HAND_OVER, {"id": id, "job": job, "to": to}))


def progress(
    db: Database,
    operation: Operation,
    *,
    changed: int,
    skipped: Mapping[str, int],
    cursor: Sequence[str] | None,
    state: str | None,
) -> None:
    """Add what a chunk did; ``state``: how the operation ended with it, None if it
    goes on."""
    reasons = dict(operation.skipped)
    for reason, count in skipped.items():
        reasons[reason] = reasons.get(reason, 0) + count
    params = {
        "id": operation.id,
        "seen": changed + sum(skipped.values()),
        "changed": changed,
        "skipped": json.dumps(reasons),
        "cursor": json.dumps(cursor),
        "state": state,
    }
    db.run(PROGRESS, params)


def set_counted(db: Database, id: UUID, counted: Counted) -> None:
    """Write down what was counted; when all is, also how many jobs it is about."""
    total = counted.number if counted.over else None
    params = {"id": id, "counted": counted.to_json(), "total": total}
    db.run(SET_COUNTED, params)


def discard(db: Database, id: UUID) -> None:
    """Delete a draft; what has started stays."""
    db.run(DISCARD, {"id": id})


def drop(db: Database, keep: float) -> bool:
    """Delete a batch of those that are not going on, and of which nothing was heard for
    so many seconds; True if there may be more."""
    params = {"active": list(ACTIVE), "keep": keep, "batch": BATCH}
    return len(db.fetch(DROP, params)) == BATCH


def set_job(db: Database, id: UUID, job: UUID) -> None:
    """Write down which job counts it."""
    db.run(SET_JOB, {"id": id, "job": job})


def is_queued(db: Database, job: UUID) -> bool:
    """Whether the job that works an operation off is there."""
    return bool(db.fetch(IS_QUEUED, {"id": job})[0][0])


def _one(rows: list[tuple[Any, ...]]) -> Operation | None:
    return _operation(rows[0]) if rows else None


def _operation(row: tuple[Any, ...]) -> Operation:
    (id, kind, state, selection, cutoff, options, reason, per_minute, *remainder) = row
    total, seen, changed, skipped, cursor, created_by, job_id, *remainder = remainder
    horizon, counted, confirmed = remainder
    return Operation(
        id=id,
        kind=kind,
        state=state,
        selection=Selection.from_json(read_json(selection)),
        cutoff=cutoff,
        options=Options.from_json(read_json(options)),
        reason=reason,
        per_minute=per_minute,
        total=total,
        seen=seen,
        changed=changed,
        skipped=read_json(skipped),
        cursor=None if cursor is None else read_json(cursor),
        created_by=created_by,
        job_id=job_id,
        horizon=horizon,
        counted=Counted.from_json(read_json(counted) if counted else None),
        confirmed=confirmed,
    )
