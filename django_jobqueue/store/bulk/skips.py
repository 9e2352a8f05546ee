"""The jobs that an operation skips, and why: one rule for the count that an operator
confirms, for the chunks of a bulk operation, and for a few jobs named by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.states import BulkKind, QueuedStatus, SkipReplayed
from django_jobqueue.search.selection import Table
from django_jobqueue.store.already_replayed import REPLAYS
from django_jobqueue.store.bulk.draft_counts import Counted, Traits
from django_jobqueue.store.bulk.operation_rows import Operation, Options
from django_jobqueue.store.connection import Database

# A cutoff is a moment, and a transaction may write a job that ended before it and
# commit after. Such a job joined later. Only jobs of the last day are asked: the number
# of a transaction is used again after two thousand million others.
_LATE: Final = """old.finished_at > %(cutoff)s::timestamptz - interval '1 day'
              AND age(old.xmin) <= age(%(horizon)s::text::xid)"""
PRUNED: Final = f"""
SELECT old.id, old.finished_at, old.job_type,
       concat_ws(' ', old.status, CASE WHEN {_LATE} THEN 'late' END)
  FROM jobqueue_archivedjob AS old
 WHERE old.id = ANY (%(ids)s::uuid[])
"""
# IN, not EXISTS: of that the planner makes a scan of the whole table, for each chunk.
REPLAYED: Final = f"""
WITH again AS MATERIALIZED ({REPLAYS})
SELECT old.id, old.finished_at, old.job_type,
       concat_ws(' ', old.status,
         CASE WHEN type.name IS NULL THEN 'type_gone' END,
         CASE WHEN old.erased_at IS NOT NULL THEN 'erased' END,
         CASE WHEN type.delivery = 'at_most_once' THEN 'at_most_once' END,
         CASE WHEN old.id IN (SELECT replay_of FROM again) THEN 'replayed' END,
         CASE WHEN old.id IN (SELECT replay_of FROM again WHERE succeeded)
              THEN 'replay_succeeded' END,
         CASE WHEN old.expires_at <= clock_timestamp() THEN 'expired' END)
  FROM jobqueue_archivedjob AS old
  LEFT JOIN jobqueue_jobtype AS type ON type.name = old.job_type
 WHERE old.id = ANY (%(ids)s::uuid[])
"""
WAITING: Final = """
SELECT id, created_at, job_type, status
  FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[])
"""
# One replay at a time judges and inserts, so that two of them on the same jobs do not
# each find that nobody replayed them.
ONE_REPLAY_AT_A_TIME: Final = """
SELECT pg_advisory_xact_lock(hashtext('jobqueue'), hashtext('bulk replay'))::text
"""
_STATEMENTS: Final = {
    BulkKind.REPLAY: REPLAYED,
    BulkKind.CANCEL: WAITING,
    BulkKind.RUN_NOW: WAITING,
    BulkKind.RESCHEDULE: WAITING,
    BulkKind.PRUNE: PRUNED,
}
_REPLAYED: Final[dict[str, str]] = {
    SkipReplayed.ANY: "replayed",
    SkipReplayed.SUCCEEDED: "replay_succeeded",
}


def traits_of(
    db: Database,
    kind: str,
    ids: Sequence[UUID],
    *,
    cutoff: datetime | None = None,
    horizon: str = "",
) -> list[Traits]:
    """The traits of these jobs; those that are gone are left out.

    ``cutoff`` and ``horizon`` are those of the bulk operation, which a prune needs.
    """
    statement = _STATEMENTS[BulkKind(kind)]
    params = {"ids": list(ids), "cutoff": cutoff, "horizon": horizon or None}
    return [Traits(*row) for row in db.fetch(statement, params)]


def left_out(
    db: Database,
    kind: str,
    ids: Sequence[UUID],
    options: Options,
    *,
    cutoff: datetime | None = None,
    horizon: str = "",
) -> dict[UUID, str]:
    """Why some of these archived jobs are skipped. The caller's transaction has to do
    its work with the others before it ends."""
    if kind == BulkKind.REPLAY and options.skip_replayed != SkipReplayed.NONE:
        db.fetch(ONE_REPLAY_AT_A_TIME)
    jobs = traits_of(db, kind, ids, cutoff=cutoff, horizon=horizon)
    return {
        job.id: reason
        for job in jobs
        if (reason := skip_reason(kind, job.traits, options))
    }


def skip_reason(kind: str, traits: str, options: Options) -> str | None:
    """Why a job with these traits is skipped; None if it is not."""
    present = traits.split()
    for trait, reason in _reasons(kind, options):
        if trait in present:
            return reason
    return None


def planned(kind: str, counted: Counted, options: Options) -> tuple[int, Counter[str]]:
    """The number of counted jobs that would be changed, and the numbers skipped, by
    reason."""
    skipped: Counter[str] = Counter()
    changes = 0
    for traits, number in counted.cells.items():
        reason = skip_reason(kind, traits, options)
        if reason is None:
            changes += number
        else:
            skipped[reason] += number
    return changes, skipped


def allowed(operation: Operation, options: Options) -> int | None:
    """The number of jobs that a confirmed operation may change; None is unlimited.

    Of archived jobs it is the number that the operator confirmed. Of queued jobs it is
    the number counted, because a job that ran then may wait by now.
    """
    return _least(_confirmed(operation, options), options.limit)


def _confirmed(operation: Operation, options: Options) -> int | None:
    counted = operation.counted
    if not counted.over:
        return None
    if operation.selection.table is Table.QUEUED:
        return counted.number
    return planned(operation.kind, counted, options)[0]


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)


def _reasons(kind: str, options: Options) -> list[tuple[Any, str]]:
    """The traits that skip a job, and the name of the reason; the first one counts."""
    match kind:
        case BulkKind.REPLAY:
            reasons: list[tuple[Any, str]] = [
                ("type_gone", "type_gone"),
                ("erased", "erased"),
            ]
            if options.skip_at_most_once:
                reasons.append(("at_most_once", "at_most_once"))
            if options.skip_replayed in _REPLAYED:
                reasons.append((_REPLAYED[options.skip_replayed], "replayed"))
            return reasons
        case BulkKind.PRUNE:
            return [("late", "late")]
        case BulkKind.RUN_NOW | BulkKind.RESCHEDULE:
            return [(QueuedStatus.RUNNING.value, "running")]
        case BulkKind.CANCEL:
            return []
    raise ValueError(f"A bulk operation cannot {kind!r}.")
