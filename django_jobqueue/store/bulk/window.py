"""Reads the next jobs of a bulk operation after a position, in the order of an index.

Counting and working read in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.states import BulkKind
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.bulk.operation_rows import Operation
from django_jobqueue.store.connection import Database
from django_jobqueue.store.selection import condition
from django_jobqueue.store.work_rows import JOB_TYPE

# What an index serves in the order of the walk. Everything else is looked at job by
# job, in as many rows as a chunk may look at: however rare its jobs are, no statement
# searches the whole table for them.
_INDEXED: Final = {
    Table.ARCHIVED: frozenset({"id", "type", "status", "group", "finished"}),
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
  FROM (SELECT id, finished_at, job_type, %(prune)s AS is_prune,
               {unindexed} AS is_wanted
          FROM jobqueue_archivedjob
         WHERE finished_at <= %(cutoff)s AND {position} AND {indexed}
         ORDER BY finished_at, id
         LIMIT %(max_rows)s) AS seen
"""
ARCHIVED_POSITION: Final = (
    "(finished_at, id) > (%(cursor_0)s::timestamptz, %(cursor_1)s::uuid)"
)
QUEUED: Final = """
SELECT seen.id, seen.job_type <> %(internal)s AND seen.created_at <= %(cutoff)s,
       seen.is_wanted
  FROM (SELECT id, created_at, job_type, {unindexed} AS is_wanted
          FROM jobqueue_queuedjob
         WHERE {position} AND {indexed}
         ORDER BY id
         LIMIT %(max_rows)s) AS seen
"""
QUEUED_POSITION: Final = "id > %(cursor_0)s::uuid"


class Window(NamedTuple):
    """The next jobs after a cursor."""

    wanted: list[UUID]
    examined: int
    cursor: Sequence[str]
    at_end: bool


class Values:
    """Values of a statement under names of their own."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}

    def __call__(self, value: Any) -> str:
        name = f"value_{len(self.params)}"
        self.params[name] = value
        return f"%({name})s"


def pin(db: Database) -> None:
    """Let the plans of this transaction be index scans, and its statements short."""
    db.fetch(PIN, {"limit": LIMIT})


def window(
    db: Database,
    operation: Operation,
    cursor: Sequence[str] | None,
    *,
    max_rows: int,
    most: int,
) -> Window:
    """The jobs in the next ``max_rows`` rows after the cursor, and ``most`` at most."""
    rows = db.fetch(*_question(operation, cursor or (), max_rows))
    wanted: list[UUID] = []
    last: Sequence[Any] = cursor or ()
    for *key, is_ours, is_wanted in rows:
        if is_ours and is_wanted:
            if len(wanted) == most:
                return Window(wanted, max_rows, _written(last), False)
            wanted.append(key[-1])
        last = key
    return Window(wanted, len(rows), _written(last), len(rows) < max_rows)


def _question(
    operation: Operation, cursor: Sequence[str], max_rows: int
) -> tuple[str, dict[str, Any]]:
    """The statement and its parameters."""
    selection, values = operation.selection, Values()
    archived = selection.table is Table.ARCHIVED
    position = ARCHIVED_POSITION if archived else QUEUED_POSITION
    statement = (ARCHIVED if archived else QUEUED).format(
        position=position if cursor else "true",
        indexed=condition(part_of(selection, indexed=True), values),
        unindexed=condition(part_of(selection, indexed=False), values),
    )
    return statement, {
        **values.params,
        **{f"cursor_{number}": part for number, part in enumerate(cursor)},
        "cutoff": operation.cutoff,
        "internal": JOB_TYPE,
        "prune": operation.kind == BulkKind.PRUNE,
        "max_rows": max_rows,
    }


def _written(position: Sequence[Any]) -> list[str]:
    """A position as JSON can hold it; to the microsecond, as the table has it."""
    return [
        part.isoformat() if isinstance(part, datetime) else str(part)
        for part in position
    ]


def part_of(selection: Selection, *, indexed: bool) -> Selection:
    """The terms that an index serves in the order of the walk, or the others."""
    served = _INDEXED[selection.table]
    terms = tuple(t for t in selection.terms if (t.field in served) is indexed)
    return replace(selection, terms=terms)
