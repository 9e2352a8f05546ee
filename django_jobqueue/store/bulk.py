"""One chunk of a bulk operation: the next jobs after its cursor, and what is done with
them.

The caller's transaction holds all of it. The effect on the jobs and the new place of
the cursor are committed together, so each job is handled once, whatever dies meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.selection import Selection, Table
from django_jobqueue.states import BulkKind
from django_jobqueue.store import operations
from django_jobqueue.store.cancel import cancel
from django_jobqueue.store.connection import Database
from django_jobqueue.store.operations import JOB_TYPE, Operation
from django_jobqueue.store.prune import prune_ids
from django_jobqueue.store.replay import Replay, replay
from django_jobqueue.store.reschedule import reschedule
from django_jobqueue.store.selection import condition

# What an index serves in the order of the walk. Everything else is looked at job by
# job, in as many rows as a chunk may look at: however rare its jobs are, no statement
# searches the whole table for them.
_INDEXED: Final = {
    Table.ARCHIVED: frozenset({"id", "type", "status", "group"}),
    Table.QUEUED: frozenset({"id"}),
}

# Plans must not depend on statistics: the queue may have been empty when it was last
# analysed, and then each chunk would read all that those before it have inserted.
PIN: Final = """
SELECT set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
       set_config('statement_timeout', %(limit)s, true)
"""
LIMIT: Final = "30000"  # milliseconds of a statement

# The oldest first. The rows of a window come in the order of an index, and the rest of
# the conditions is asked only of them.
ARCHIVED: Final = """
SELECT seen.finished_at, seen.id,
       seen.is_prune OR seen.job_type <> %(internal)s, seen.is_wanted
  FROM (SELECT id, finished_at, job_type, %(prune)s AS is_prune, {rest} AS is_wanted
          FROM jobqueue_archivedjob
         WHERE finished_at <= %(cutoff)s AND {position} AND {indexed}
         ORDER BY finished_at, id
         LIMIT %(look)s) AS seen
"""
ARCHIVED_POSITION: Final = (
    "(finished_at, id) > (%(cursor_0)s::timestamptz, %(cursor_1)s::uuid)"
)
QUEUED: Final = """
SELECT seen.id, seen.job_type <> %(internal)s AND seen.created_at <= %(cutoff)s,
       seen.is_wanted
  FROM (SELECT id, created_at, job_type, {rest} AS is_wanted
          FROM jobqueue_queuedjob
         WHERE {position} AND {indexed}
         ORDER BY id
         LIMIT %(look)s) AS seen
"""
QUEUED_POSITION: Final = "id > %(cursor_0)s::uuid"

# One replay operation at a time judges and inserts, so that two of them on the same
# jobs do not each find that nobody replayed them.
ONE_REPLAY_AT_A_TIME: Final = """
SELECT pg_advisory_xact_lock(hashtext('jobqueue'), hashtext('bulk replay'))::text
"""
# IN, not EXISTS: of that the planner makes a scan of the whole table, for each chunk.
JUDGE: Final = """
WITH again AS MATERIALIZED (
  SELECT replay_of FROM jobqueue_archivedjob
   WHERE replay_of = ANY (%(ids)s::uuid[])
     AND (%(skip_replayed)s = 'any'
          OR (%(skip_replayed)s = 'succeeded' AND status = 'succeeded'))
  UNION ALL
  SELECT replay_of FROM jobqueue_queuedjob
   WHERE replay_of = ANY (%(ids)s::uuid[]) AND %(skip_replayed)s = 'any'
)
SELECT id, reason
  FROM (SELECT old.id,
               CASE WHEN type.name IS NULL THEN 'type_gone'
                    WHEN %(skip_at_most_once)s AND type.delivery = 'at_most_once'
                         THEN 'at_most_once'
                    WHEN old.id IN (SELECT replay_of FROM again) THEN 'replayed'
               END AS reason
          FROM jobqueue_archivedjob AS old
          LEFT JOIN jobqueue_jobtype AS type ON type.name = old.job_type
         WHERE old.id = ANY (%(ids)s::uuid[])) AS judged
 WHERE reason IS NOT NULL
"""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What a chunk came to."""

    looked_at: int = 0
    changed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    over: bool = False  # nothing is left


@dataclass(frozen=True, slots=True)
class _Window:
    """The next jobs after the cursor."""

    wanted: list[UUID]
    looked_at: int
    cursor: Sequence[str]
    at_end: bool


class _Values:
    """Values of a statement under names of their own."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}

    def __call__(self, value: Any) -> str:
        name = f"value_{len(self.params)}"
        self.params[name] = value
        return f"%({name})s"


def chunk(
    db: Database, operation: Operation, *, look: int, most: int | None = None
) -> Chunk:
    """Handle the next jobs of an operation that this transaction has locked.

    ``look``: how many rows are looked at; ``most``: how many jobs are handled.
    """
    db.fetch(PIN, {"limit": LIMIT})
    window = _window(db, operation, look, look if most is None else most)
    changed, skipped = 0, Counter[str]()
    if window.wanted:
        changed, skipped = _ACTS[BulkKind(operation.kind)](db, operation, window.wanted)
    operations.progress(
        db,
        operation,
        changed=changed,
        skipped=skipped,
        cursor=window.cursor,
        over=window.at_end,
    )
    return Chunk(
        looked_at=window.looked_at,
        changed=changed,
        skipped=skipped,
        over=window.at_end,
    )


def _window(db: Database, operation: Operation, look: int, most: int) -> _Window:
    selection, values = operation.selection, _Values()
    archived = selection.table is Table.ARCHIVED
    position = ARCHIVED_POSITION if archived else QUEUED_POSITION
    statement = (ARCHIVED if archived else QUEUED).format(
        position=position if operation.cursor else "true",
        indexed=condition(_part(selection, indexed=True), values),
        rest=condition(_part(selection, indexed=False), values),
    )
    cursor = operation.cursor or ()
    params = {
        **values.params,
        **{f"cursor_{number}": part for number, part in enumerate(cursor)},
        "cutoff": operation.cutoff,
        "internal": JOB_TYPE,
        "prune": operation.kind == BulkKind.PRUNE,
        "look": look,
    }
    rows = db.fetch(statement, params)
    wanted: list[UUID] = []
    last: Sequence[Any] = cursor
    for *key, is_ours, is_wanted in rows:
        if is_ours and is_wanted:
            if len(wanted) == most:
                return _Window(wanted, look, _written(last), False)
            wanted.append(key[-1])
        last = key
    return _Window(wanted, len(rows), _written(last), len(rows) < look)


def _written(position: Sequence[Any]) -> list[str]:
    """A position as JSON can hold it; to the microsecond, as the table has it."""
    return [
        part.isoformat() if isinstance(part, datetime) else str(part)
        for part in position
    ]


def _part(selection: Selection, *, indexed: bool) -> Selection:
    served = _INDEXED[selection.table]
    terms = tuple(t for t in selection.terms if (t.field in served) is indexed)
    return replace(selection, terms=terms)


Acted = tuple[int, Counter[str]]  # how many were changed, and why others were not


def _replay(db: Database, operation: Operation, ids: list[UUID]) -> Acted:
    options = operation.options
    if options.skip_replayed != "none":
        db.fetch(ONE_REPLAY_AT_A_TIME)
    params = {
        "ids": ids,
        "skip_replayed": options.skip_replayed,
        "skip_at_most_once": options.skip_at_most_once,
    }
    left_out = dict(db.fetch(JUDGE, params))
    chosen = [id for id in ids if id not in left_out]
    how = Replay(
        run_after=options.run_after,
        queue=options.queue,
        priority=options.priority,
        expiry=options.expiry,
        by=operation.created_by or None,
        bulk_operation_id=operation.id,
    )
    made = replay(db, chosen, how) if chosen else {}
    skipped = Counter(left_out.values())
    return len(made), _with_rest(skipped, len(chosen) - len(made))


def _cancel(db: Database, operation: Operation, ids: list[UUID]) -> Acted:
    held, skipped = _hold(db, operation, ids, running_too=True)
    by = operation.created_by
    reason = operation.reason or (f"cancelled by {by}" if by else "cancelled")
    done = cancel(db, held, reason=reason)
    changed = len(done.archived) + len(done.asked)
    return changed, _with_rest(skipped, len(held) - changed)


def _run_now(db: Database, operation: Operation, ids: list[UUID]) -> Acted:
    held, skipped = _hold(db, operation, ids)
    changed = len(reschedule(db, held, now=True))
    return changed, _with_rest(skipped, len(held) - changed)


def _reschedule(db: Database, operation: Operation, ids: list[UUID]) -> Acted:
    options = operation.options
    held, skipped = _hold(db, operation, ids, run_after=options.run_after)
    changed = reschedule(
        db,
        held,
        run_after=options.run_after,
        priority=options.priority,
        queue=options.queue,
    )
    return len(changed), _with_rest(skipped, len(held) - len(changed))


def _prune(db: Database, operation: Operation, ids: list[UUID]) -> Acted:
    changed = len(prune_ids(db, ids))
    return changed, _with_rest(Counter(), len(ids) - changed)


_ACTS: Final = {
    BulkKind.REPLAY: _replay,
    BulkKind.CANCEL: _cancel,
    BulkKind.RUN_NOW: _run_now,
    BulkKind.RESCHEDULE: _reschedule,
    BulkKind.PRUNE: _prune,
}


def _hold(
    db: Database,
    operation: Operation,
    ids: list[UUID],
    *,
    running_too: bool = False,
    run_after: datetime | None = None,
) -> tuple[list[UUID], Counter[str]]:
    """Lock those that are still selected; a job that is just being claimed is waited
    for only if it may run."""
    values = _Values()
    statement = HOLD.format(
        condition=condition(operation.selection, values),
        busy="" if running_too else "SKIP LOCKED",
    )
    params = {"ids": ids, "running_too": running_too, "run_after": run_after}
    return _sorted_out(db.fetch(statement, {**values.params, **params}), len(ids))


def _sorted_out(
    rows: list[tuple[Any, ...]], asked: int
) -> tuple[list[UUID], Counter[str]]:
    """Those without a reason to leave them out; and how many have which."""
    skipped = Counter(reason for _, reason in rows if reason)
    return (
        [id for id, reason in rows if not reason],
        _with_rest(skipped, asked - len(rows)),
    )


def _with_rest(skipped: Counter[str], missed: int) -> Counter[str]:
    """Also those that were not there any more, or not as they were selected."""
    if missed:
        skipped["changed"] += missed
    return skipped
