"""Chunks on several connections at once, and the plans of their statements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import ArchivedJob, BulkOperation, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk import chunk as store_bulk
from django_jobqueue.store.bulk import skips, window
from django_jobqueue.store.bulk.skips import planned
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection, Params
from tests.store.meanwhile import (
    Background,
    OpenTransaction,
    open_transaction,
    together,
    until_older_transactions_end,
    until_waiting,
)
from tests.store.rows import ADD, ago, archive, make_many

FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))


def replaying(count: int) -> UUID:
    """Archive failed jobs, and start to replay them."""
    DjangoDatabase().run(
        "INSERT INTO jobqueue_archivedjob (job_type, status, finished_at) "
        "SELECT %(add)s, 'failed', clock_timestamp() - (10000 - n) * interval '1 s' "
        "FROM generate_series(1, %(count)s) AS n",
        {"add": ADD, "count": count},
    )
    id = bulk.draft("replay", FAILED).id
    assert bulk.start(id)
    return id


def one_chunk(
    db: Any, id: UUID, wrap: Callable[[Any], Any] = lambda db: db
) -> store_bulk.Chunk:
    """A chunk of five rows of the operation."""
    operation = store_bulk.operation_rows.OPERATIONS.lock(db, id)
    assert operation is not None
    return store_bulk.chunk(wrap(db), operation, max_rows=5)


def to_the_end(id: UUID, max_rows: int) -> int:
    """All chunks; returns how many jobs were changed by this caller."""
    changed = 0
    while (done := bulk.WORK.do_chunk(id, max_rows=max_rows)) is not None:
        changed += done.changed
    return changed


def copies() -> list[UUID | None]:
    found = QueuedJob.objects.exclude(replay_of=None)
    return list(found.values_list("replay_of", flat=True))


def test_two_that_work_on_one_operation_share_its_jobs(transactional_db: None) -> None:
    id = replaying(100)
    changed = together([partial(to_the_end, id, 7), partial(to_the_end, id, 11)])
    assert sum(changed) == 100
    assert len(set(copies())) == len(copies()) == 100
    row = BulkOperation.objects.get()
    assert (row.state, row.changed, row.seen) == ("done", 100, 100)


def test_two_operations_on_the_same_jobs_replay_once(transactional_db: None) -> None:
    one, two = replaying(60), replaying(0)
    together([partial(to_the_end, one, 7), partial(to_the_end, two, 9)])
    assert len(set(copies())) == len(copies()) == 60
    left_out = [row.skipped.get("replayed", 0) for row in BulkOperation.objects.all()]
    assert sum(left_out) == 60


def test_a_pause_waits_for_the_chunk(
    own: OwnConnection, background: Background
) -> None:
    id = replaying(20)
    with open_transaction(own, undone=True) as db:  # a chunk that never was
        assert one_chunk(db, id).changed == 5
    row = BulkOperation.objects.get()
    assert (row.state, row.changed, row.cursor, copies()) == ("queued", 0, None, [])
    with open_transaction(own) as db:
        one_chunk(db, id)
        pausing = background(partial(bulk.pause, id))
        until_waiting()
    assert pausing.result(30)
    row = BulkOperation.objects.get()
    assert (row.state, row.changed, len(copies())) == ("paused", 5, 5)


def test_a_job_that_is_being_claimed_is_waited_for_only_to_cancel_it(
    own: OwnConnection, background: Background
) -> None:
    held, free = make_many(2)
    waiting = Selection(Table.QUEUED, (Term("type", ADD),))
    now, cancel = bulk.draft("run_now", waiting).id, bulk.draft("cancel", waiting).id
    assert bulk.start(now)
    assert bulk.start(cancel)
    with open_transaction(own) as db:
        db.run(
            "UPDATE jobqueue_queuedjob SET status = 'running', attempts = 1 "
            "WHERE id = %(id)s",
            {"id": held},
        )
        to_the_end(now, 100)
        cancelling = background(partial(to_the_end, cancel, 100))
        until_waiting()
    assert cancelling.result(30) == 2
    assert BulkOperation.objects.get(pk=now).skipped == {"changed": 1}
    assert QueuedJob.objects.get(id=held).cancel_requested_at is not None
    assert ArchivedJob.objects.get(id=free).status == "cancelled"


ARCHIVE = """
INSERT INTO jobqueue_archivedjob (id, job_type, status, finished_at)
VALUES (%(id)s, 'tests.sample.add', 'failed', %(at)s)
"""


@pytest.mark.parametrize(
    ("when", "savepoint"),
    [("before the count", True), ("before the start", False), ("at work", True)],
)
def test_a_job_that_is_committed_late_is_not_pruned(
    own: OwnConnection, savepoint: bool, when: str
) -> None:
    """It ended before the draft was made, and was not there yet."""
    there, late = new_id(), new_id()
    DjangoDatabase().run(ARCHIVE, {"id": there, "at": ago(60)})
    until_older_transactions_end()
    chosen = Selection(Table.ARCHIVED, (Term("status", "failed"),))
    with open_transaction(own) as db:
        if savepoint:
            db.run("SAVEPOINT inside")
        db.run(ARCHIVE, {"id": late, "at": ago(30)})
        if savepoint:
            db.run("RELEASE SAVEPOINT inside")
        made = bulk.draft("prune", chosen)
        if when == "before the count":
            BulkOperation.objects.update(counted=None, total=None)
        else:
            assert made.total == 1
        if when == "at work":
            assert bulk.start(made.id)
    counted = bulk.count(made.id).counted
    assert planned("prune", counted, made.options)[0] == 1
    assert when == "at work" or bulk.start(made.id)
    to_the_end(made.id, 100)
    row = BulkOperation.objects.get()
    assert (row.changed, row.skipped) == (1, {"late": 1})
    assert [job.id for job in ArchivedJob.objects.filter(status="failed")] == [late]


def test_jobs_written_very_long_ago_are_pruned(transactional_db: None) -> None:
    """The number of their transaction may be one that is used again."""
    old = new_id()
    DjangoDatabase().run(ARCHIVE, {"id": old, "at": ago(3 * 86_400)})
    made = bulk.draft("prune", FAILED)
    BulkOperation.objects.update(horizon="3")
    assert bulk.start(made.id)
    to_the_end(made.id, 100)
    assert BulkOperation.objects.get().changed == 1


class Interrupted:
    """A store's database; when it has looked for the next jobs, something happens."""

    def __init__(self, db: OpenTransaction, happens: Callable[[], object]) -> None:
        self._db = db
        self._happens = happens
        self.run = db.run

    def fetch(self, statement: str, params: Params = {}) -> list[tuple[Any, ...]]:  # noqa: B006
        rows = self._db.fetch(statement, params)
        if "is_wanted" in statement:
            self._happens()
        return rows


def in_between(
    own: OwnConnection, id: UUID, happens: Callable[[], object]
) -> tuple[int, dict[str, int]]:
    """A chunk in which something happens after its jobs were found; how many it
    changed, and what it skipped."""
    assert bulk.start(id)
    with open_transaction(own) as db:
        done = one_chunk(db, id, partial(Interrupted, happens=happens))
    return done.changed, done.skipped


def test_a_job_that_changes_after_it_was_found_is_left_alone(
    own: OwnConnection, other: OwnConnection
) -> None:
    chosen = Selection(Table.QUEUED, (Term("queue", "a"),))
    for kind, change, skipped in [
        ("run_now", "queue = 'b'", "changed"),
        ("run_now", "status = 'running'", "running"),
        ("reschedule", "queue = 'b'", "changed"),
        ("reschedule", "status = 'running'", "running"),
        ("cancel", "queue = 'b'", "changed"),
    ]:
        QueuedJob.objects.all().delete()
        first, _ = make_many(2, queue="a")
        options = {"priority": 9} if kind == "reschedule" else {}
        id = bulk.draft(kind, chosen, **options).id
        update = f"UPDATE jobqueue_queuedjob SET {change} WHERE id = %(id)s"
        run = partial(other.run, update, {"id": first})
        assert in_between(own, id, run) == (1, {skipped: 1})
        left = QueuedJob.objects.get(id=first)
        assert (left.priority, left.cancel_requested_at) == (0, None)


def test_a_job_that_is_pruned_after_it_was_found_is_counted_as_changed(
    own: OwnConnection, other: OwnConnection
) -> None:
    for kind in ("replay", "prune"):
        ArchivedJob.objects.all().delete()
        first, second = (archive(ADD, "failed", finished_at=ago(n)) for n in (9, 5))
        until_older_transactions_end()
        id = bulk.draft(kind, FAILED).id
        delete = "DELETE FROM jobqueue_archivedjob WHERE id = %(id)s"
        run = partial(other.run, delete, {"id": first})
        assert in_between(own, id, run) == (1, {"changed": 1})
        assert copies() == [second][: kind == "replay"]
        QueuedJob.objects.all().delete()


def test_a_job_that_leaves_the_selection_while_it_is_waited_for_is_not_cancelled(
    own: OwnConnection, background: Background
) -> None:
    first, second = make_many(2, queue="a")
    chosen = Selection(Table.QUEUED, (Term("queue", "a"),))
    id = bulk.draft("cancel", chosen).id
    assert bulk.start(id)
    with open_transaction(own) as db:
        db.run(
            "UPDATE jobqueue_queuedjob SET queue = 'b' WHERE id = %(id)s", {"id": first}
        )
        cancelling = background(partial(to_the_end, id, 100))
        until_waiting()
    assert cancelling.result(30) == 1
    assert QueuedJob.objects.get(id=first).cancel_requested_at is None
    assert not QueuedJob.objects.filter(id=second).exists()
    assert BulkOperation.objects.get().skipped == {"changed": 1}


def test_only_the_job_in_charge_hands_work_over(transactional_db: None) -> None:
    id = replaying(3)
    first = BulkOperation.objects.get().job_id
    assert first is not None
    for state in ("paused", "stopped", "failed", "done"):
        BulkOperation.objects.update(state=state)
        assert not bulk.WORK.hand_over(id, job=first, after=60)
        assert BulkOperation.objects.get().job_id == first
    BulkOperation.objects.update(state="running")
    assert bulk.WORK.hand_over(id, job=first, after=60)
    second = BulkOperation.objects.get().job_id
    waiting = QueuedJob.objects.count()
    assert second != first
    assert not bulk.WORK.hand_over(id, job=first, after=60)
    assert BulkOperation.objects.get().job_id == second
    assert QueuedJob.objects.count() == waiting


def test_no_statement_reads_a_whole_table_or_sorts_it(db: None) -> None:
    """Also with statistics of a time when the tables were empty."""
    window_of_archived = window.ARCHIVED.format(
        position=window.ARCHIVED_POSITION,
        indexed="jobqueue_archivedjob.status = 'failed'",
        unindexed="true",
    )
    of_window = {
        "cutoff": ago(0),
        "cursor_0": ago(9_000).isoformat(),
        "cursor_1": str(new_id()),
        "internal": "jobqueue.bulk",
        "prune": False,
        "max_rows": 100,
    }
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_queuedjob, jobqueue_archivedjob")
    replaying(1_000)
    to_the_end(BulkOperation.objects.get().pk, 500)
    ids = list(ArchivedJob.objects.values_list("pk", flat=True)[:500])
    for statement, params in (
        (skips.REPLAYED, {}),
        (skips.PRUNED, {"cutoff": ago(0), "horizon": "1000"}),
        (window_of_archived, of_window),
    ):
        with transaction.atomic(), connection.cursor() as cursor:
            window.pin(DjangoDatabase())
            cursor.execute(f"EXPLAIN {statement}", {**params, "ids": ids})
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "Seq Scan on jobqueue_queuedjob" not in plan
        assert "Seq Scan on jobqueue_archivedjob" not in plan
        assert "Sort" not in plan
