"""Drafts, starts and stores bulk operations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.operation_options import Options as Options
from django_jobqueue.domain.states import WorkState
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.draft_counts import Counted
from django_jobqueue.store.connection import Database
from django_jobqueue.store.work_rows import ACTIVE, WorkTable, as_it_is

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

# What cannot be taken back never starts uncounted, whoever asks.
START: Final = """
UPDATE jobqueue_bulkoperation
   SET state = 'queued', options = %(options)s::jsonb, reason = %(reason)s,
       per_minute = %(per_minute)s, job_id = %(job)s, confirmed = %(confirmed)s
 WHERE id = %(id)s AND state = 'draft'
   AND (kind <> 'prune' OR %(confirmed)s::bigint IS NOT NULL)
RETURNING id
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


class Operation(NamedTuple):
    """A bulk operation as it was when it was read."""

    id: UUID
    kind: str  # of states.BulkKind
    state: str  # of states.WorkState
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


OPERATIONS: Final = WorkTable(
    "jobqueue_bulkoperation",
    Operation,
    json={
        "selection": Selection.from_json,
        "options": Options.from_json,
        "counted": Counted.from_json,
        "skipped": dict,
        "cursor": as_it_is,
    },
    progress=("seen", "changed", "skipped", "cursor"),
    counts=("counted", "total"),
)
NEWEST: Final = f"""
SELECT {OPERATIONS.columns} FROM jobqueue_bulkoperation
 ORDER BY created_at DESC, id DESC
 LIMIT %(most)s
"""


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


def newest(db: Database, most: int) -> list[Operation]:
    """The newest operations, at most so many, the newest first."""
    return [OPERATIONS.row(row) for row in db.fetch(NEWEST, {"most": most})]


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


def progress(
    db: Database,
    operation: Operation,
    to: WorkState,
    *,
    changed: int,
    skipped: Mapping[str, int],
    cursor: Sequence[str],
) -> None:
    """Add what a chunk did, and the state that it led to."""
    OPERATIONS.progress(
        db,
        operation.id,
        to,
        seen=operation.seen + changed + sum(skipped.values()),
        changed=operation.changed + changed,
        skipped=json.dumps(Counter(operation.skipped) + Counter(skipped)),
        cursor=json.dumps(cursor),
    )


def set_counted(db: Database, id: UUID, counted: Counted) -> None:
    """Store what was counted; when all is, also how many jobs it is about."""
    total = counted.number if counted.over else None
    OPERATIONS.set_counted(db, id, counted=counted.to_json(), total=total)


def drop(db: Database, keep: float) -> bool:
    """Delete a batch of those that are not going on, and of which nothing was heard for
    so many seconds; True if there may be more."""
    params = {"active": list(ACTIVE), "keep": keep, "batch": BATCH}
    return len(db.fetch(DROP, params)) == BATCH
