"""Counts the jobs of a drafted bulk operation chunk by chunk, and never estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from uuid import UUID

from django.db import transaction

from django_jobqueue.search.selection import Table
from django_jobqueue.store.bulk.draft_counts import MOST_EXAMPLES, Counted, Traits
from django_jobqueue.store.bulk.operation_rows import Operation
from django_jobqueue.store.bulk.skips import planned, skip_reason, traits_of
from django_jobqueue.store.bulk.window import pin, window
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.selection import TABLES
from django_jobqueue.store.time_budget import in_time

FEW: Final = 1_000  # jobs that are never most of the table
BUDGET: Final = 5_000  # milliseconds

ROWS: Final = "SELECT count(*) FROM (SELECT FROM {table} LIMIT %(most)s) AS found"


def count_chunk(db: DjangoDatabase, operation: Operation, *, max_rows: int) -> Counted:
    """Count among the next ``max_rows`` rows."""
    before = operation.counted
    with _undone(db):
        pin(db)
        scanned = window(db, operation, before.cursor, max_rows=max_rows, most=max_rows)
        jobs = _traits(db, operation, scanned.wanted)
    counted = before.plus(
        jobs,
        examples=_examples(operation, jobs),
        examined=scanned.examined,
        cursor=scanned.cursor,
        over=scanned.at_end,
    )
    if not counted.over:
        return counted
    table = operation.selection.table
    return replace(counted, is_most=is_most(db, table, counted.number))


def is_most(db: DjangoDatabase, table: Table, number: int) -> bool | None:
    """True if this many jobs are more than half of the table; None if the answer takes
    too long. The planner's own number may be days old, so it is not used."""
    if number <= FEW:
        return False
    statement = ROWS.format(table=TABLES[table])
    params = {"most": 2 * number}
    rows = in_time(db, BUDGET, lambda: db.fetch(statement, params))
    return None if rows is None else int(rows[0][0]) < 2 * number


def _examples(operation: Operation, jobs: Sequence[Traits]) -> list[UUID]:
    """The first jobs that would be changed; after them, the first that are skipped."""
    kind, counted, options = operation.kind, operation.counted, operation.options
    changes, _ = planned(kind, counted, options)
    chosen, others = list(counted.examples[:changes]), list(counted.examples[changes:])
    for job in jobs:
        is_skipped = skip_reason(kind, job.traits, options)
        (others if is_skipped else chosen).append(job.id)
    return [*chosen, *others][:MOST_EXAMPLES]


def _traits(
    db: DjangoDatabase, operation: Operation, ids: Sequence[UUID]
) -> list[Traits]:
    if not ids:
        return []
    return traits_of(
        db, operation.kind, ids, cutoff=operation.cutoff, horizon=operation.horizon
    )


@contextmanager
def _undone(db: DjangoDatabase) -> Iterator[None]:
    """Nothing that is set here stays set for the rest of the caller's transaction."""
    with transaction.atomic(using=db.alias):
        yield
        transaction.set_rollback(True, using=db.alias)
