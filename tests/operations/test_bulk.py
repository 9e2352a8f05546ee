"""Bulk operations: drafted, started, worked off chunk by chunk, paused, undone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from django_jobqueue import InvalidArguments, operations
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    Failure,
    JobType,
    QueuedJob,
)
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk.operation_rows import Operation
from django_jobqueue.store.work_rows import Chunk
from tests.store.rows import ADD, ONCE, ago, archive, make, make_many
from tests.support.refusing_rows import NO, refused

pytestmark = pytest.mark.django_db

FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))
WAITING = Selection(Table.QUEUED, (Term("type", ADD),))
LATER = timezone.now() + timedelta(days=1)
Told = list[dict[str, Any]]


def failed(count: int = 1, job_type: str = ADD, **columns: Any) -> list[UUID]:
    """Archive failed jobs, the first the oldest."""
    return [
        archive(job_type, "failed", finished_at=ago(1_000 - number), **columns)
        for number in range(count)
    ]


def started(kind: str, selection: Selection, **options: Any) -> Operation:
    """Draft it, and start it."""
    made = bulk.draft(kind, selection, by="anna", **options)
    assert bulk.start(made.id, by="anna")
    return made


def step(operation: Operation, max_rows: int = 100, most: int | None = None) -> Chunk:
    """One chunk, which there must be."""
    done = bulk.WORK.do_chunk(operation.id, max_rows=max_rows, most=most)
    assert done is not None
    return done


def finished(operation: Operation, max_rows: int = 100) -> BulkOperation:
    """The row after all of its chunks."""
    while not step(operation, max_rows).over:
        pass
    return BulkOperation.objects.get(pk=operation.id)


def copies() -> list[UUID | None]:
    """What was replayed, in the order in which it will be claimed."""
    new = QueuedJob.objects.exclude(replay_of=None).order_by("run_after", "id")
    return list(new.values_list("replay_of", flat=True))


def test_what_cannot_be_is_refused() -> None:
    for kind, selection, options in (
        ("explode", FAILED, {}),
        ("cancel", FAILED, {}),
        ("replay", WAITING, {}),
        ("replay", FAILED.none(), {}),
        ("replay", FAILED, {"expires": "soon"}),
        ("replay", FAILED, {"skip_replayed": "some"}),
        ("replay", FAILED, {"priority": 101}),
        ("replay", FAILED, {"queue": "a b"}),
        ("replay", FAILED, {"per_minute": 0}),
        ("replay", FAILED, {"colour": "red"}),
        ("replay", FAILED, {"limit": 0}),
    ):
        with pytest.raises(InvalidArguments):
            bulk.draft(kind, selection, **options)
    assert BulkOperation.objects.count() == 0
    made = bulk.draft("reschedule", WAITING)
    with pytest.raises(InvalidArguments, match="run_after, priority or queue"):
        bulk.start(made.id)
    assert bulk.start(made.id, queue="night")
    with pytest.raises(LookupError):
        bulk.get(uuid4())


def test_only_the_first_start_starts_it(operated: Told) -> None:
    failed(2)
    made = bulk.draft("replay", FAILED, reason="why", by="anna", per_minute=60)
    assert (made.state, made.total, made.created_by) == ("draft", 2, "anna")
    assert (made.reason, made.per_minute, made.selection) == ("why", 60, FAILED)
    assert QueuedJob.objects.count() == 0
    assert bulk.start(made.id, by="anna", reason="fixed") is True
    assert bulk.start(made.id, by="bert", reason="again") is False
    (job,) = QueuedJob.objects.all()
    row = BulkOperation.objects.get()
    assert (row.state, row.reason, row.job_id) == ("queued", "fixed", job.id)
    assert (job.job_type_id, job.data) == ("jobqueue.bulk", {"operation": str(row.id)})
    (told,) = operated
    assert (told["verb"], told["by"], told["count"]) == ("start bulk replay", "anna", 2)
    assert told["details"]["filter"] == "archived: status=failed"
    assert told["details"]["reason"] == "fixed"


def test_a_replay_goes_on_chunk_by_chunk_in_the_order_of_the_jobs() -> None:
    old = failed(7)
    archive(ADD, "succeeded")
    operation = started("replay", FAILED, queue="slow", priority=-3)
    assert step(operation, max_rows=2).changed == 2
    assert copies() == old[:2]
    row = BulkOperation.objects.get()
    assert (row.state, row.seen, row.changed) == ("running", 2, 2)
    done = step(operation, max_rows=100, most=2)
    assert (done.changed, done.over) == (2, False)
    row = finished(operation, max_rows=2)
    assert copies() == old
    assert (row.state, row.seen, row.changed, row.skipped) == ("done", 7, 7, {})
    assert row.finished_at is not None
    assert bulk.WORK.do_chunk(operation.id, max_rows=2) is None
    for job in QueuedJob.objects.exclude(replay_of=None):
        assert (job.queue, job.priority, job.enqueued_by) == ("slow", -3, "anna")
        assert job.bulk_operation_id == operation.id


def test_jobs_up_to_the_cutoff_are_meant_and_none_after_it() -> None:
    operation = bulk.draft("replay", FAILED)
    cancel = bulk.draft("cancel", WAITING)
    tick = timedelta(microseconds=1)
    old = [
        archive(ADD, "failed", finished_at=operation.cutoff + shift)
        for shift in (-tick, 0 * tick, tick)
    ]
    waiting = [
        make(ADD, created_at=cancel.cutoff + shift) for shift in (-tick, 0 * tick, tick)
    ]
    BulkOperation.objects.update(counted=None, total=None)  # they were not there yet
    for each in (operation, cancel):
        assert bulk.start(each.id)
    finished(operation)
    assert copies() == old[:2]
    finished(cancel)
    assert set(
        ArchivedJob.objects.filter(status="cancelled").values_list("id", flat=True)
    ) == set(waiting[:2])
    assert QueuedJob.objects.filter(id=waiting[2]).exists()


def test_jobs_that_ended_at_the_same_moment_are_each_handled_once() -> None:
    moment = ago(50)
    old = {archive(ADD, "failed", finished_at=moment) for _ in range(9)}
    finished(started("replay", FAILED), max_rows=2)
    assert len(copies()) == 9
    assert set(copies()) == old


def test_a_rare_value_is_looked_for_in_windows() -> None:
    failed(5)
    (rare,) = failed(1, data={"order": 7})
    archive(ADD, "failed", data={"order": 7}, finished_at=ago(2_000))
    selection = FAILED.also(Term("data", 7, path=("order",)), Term("attempts", 1, ">="))
    ArchivedJob.objects.filter(id=rare).update(attempts=1)
    operation = started("replay", selection)
    looks = [step(operation, max_rows=2) for _ in range(4)]
    assert [done.examined for done in looks] == [2, 2, 2, 1]
    assert sum(done.changed for done in looks) == 1
    assert copies() == [rare]


def test_a_moment_bounds_the_rows_that_are_looked_at() -> None:
    """Who replays the failures of the last hour does not read the whole archive."""
    for _ in range(9):
        archive(ADD, "failed", finished_at=ago(9_000))
    late = failed(2)
    archive(ADD, "failed", finished_at=ago(10))
    selection = FAILED.also(
        Term("finished", ago(3_600), ">="), Term("finished", ago(60), "<")
    )
    operation = started("replay", selection)
    assert operation.counted.examined == 2
    assert step(operation, max_rows=9).examined == 2
    assert copies() == late


def test_no_more_jobs_are_changed_than_the_limit() -> None:
    old = failed(5)
    operations.replay_many(old[:1])
    row = finished(started("replay", FAILED, limit=2), max_rows=2)
    assert (row.state, row.changed) == ("stopped", 2)
    assert sorted(map(str, copies())) == sorted(map(str, old[:3]))


def test_an_operation_of_its_caller_has_no_job_until_it_is_resumed() -> None:
    old = failed(3)
    made, abandoned = (bulk.draft("replay", FAILED, here=True) for _ in range(2))
    assert bulk.start(abandoned.id, here=True)
    bulk.WORK.do_chunk(abandoned.id, max_rows=1)
    assert bulk.start(made.id, here=True)
    assert QueuedJob.objects.filter(replay_of=None).count() == 0
    assert [done.changed for done in bulk.work_here(made.id)] == [2]
    assert copies() == old
    assert bulk.get(made.id).state == "done"
    assert bulk.is_abandoned(bulk.get(abandoned.id))
    assert bulk.resume(abandoned.id)
    assert QueuedJob.objects.filter(replay_of=None).count() == 1


def test_only_a_draft_is_discarded_and_a_stopped_one_is_not_started() -> None:
    failed(1)
    draft, begun = bulk.draft("replay", FAILED), started("replay", FAILED)
    bulk.discard(draft.id), bulk.discard(begun.id)
    assert BulkOperation.objects.get().id == begun.id
    stopped = bulk.draft("replay", FAILED)
    assert bulk.stop(stopped.id)
    assert not bulk.start(stopped.id)


def test_cancel_archives_what_waits_and_asks_what_runs() -> None:
    """But for the jobs that work operations off."""
    waiting = make_many(3)
    running = make(status="running", attempts=1, started_at=timezone.now())
    row = finished(started("cancel", Selection(Table.QUEUED), reason="not wanted"))
    assert (row.changed, row.skipped) == (4, {})
    found = ArchivedJob.objects.filter(status="cancelled")
    assert {job.id for job in found} == set(waiting)
    assert {job.error_message for job in found} == {"not wanted"}
    assert QueuedJob.objects.get(id=running).cancel_requested_at is not None
    assert {job.id for job in QueuedJob.objects.all()} == {running, row.job_id}


def test_run_now_leaves_what_runs_and_reschedule_what_would_expire() -> None:
    (later,) = make_many(1, run_after=LATER)
    running = make(status="running", attempts=1, started_at=timezone.now())
    row = finished(started("run_now", WAITING))
    assert (row.changed, row.skipped) == (1, {"running": 1})
    assert QueuedJob.objects.get(id=later).run_after <= timezone.now()
    QueuedJob.objects.filter(id=running).delete()
    make(expires_at=LATER - timedelta(hours=1))
    operation = started(
        "reschedule", WAITING, run_after=LATER, priority=9, queue="night"
    )
    row = finished(operation)
    assert (row.changed, row.skipped) == (1, {"expires": 1})
    job = QueuedJob.objects.get(id=later)
    assert (job.run_after, job.priority, job.queue) == (LATER, 9, "night")


def test_prune_deletes_jobs_with_their_failures() -> None:
    (gone,) = failed(1)
    kept = archive(ADD, "succeeded")
    for job in (gone, kept):
        Failure.objects.create(job_id=job, job_type=ADD, number=1, end="failed")
    row = finished(started("prune", FAILED))
    assert (row.changed, row.skipped) == (1, {})
    assert [job.id for job in ArchivedJob.objects.all()] == [kept]
    assert [failure.job_id for failure in Failure.objects.all()] == [kept]


REFUSING: dict[str, tuple[str, str, Selection, dict[str, Any]]] = {
    "replay": ("INSERT", "jobqueue_queuedjob", FAILED, {}),
    "prune": ("DELETE", "jobqueue_archivedjob", FAILED, {}),
    "cancel": ("DELETE", "jobqueue_queuedjob", WAITING, {}),
    "run_now": ("UPDATE", "jobqueue_queuedjob", WAITING, {}),
    "reschedule": ("UPDATE", "jobqueue_queuedjob", WAITING, {"run_after": LATER}),
}


@pytest.mark.parametrize("kind", REFUSING)
def test_a_job_that_the_database_refuses_keeps_no_other_from_its_change(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A trigger or a constraint of the project may."""
    verb, table, selection, options = REFUSING[kind]
    for data in ({}, NO, {}, {}, NO, {}, {}):
        failed(data=data)
        make(data=data)
    with refused(verb, table):
        row = finished(started(kind, selection, **options), max_rows=4)
    assert (row.state, row.changed, row.skipped) == ("done", 5, {"refused": 2})
    assert "left out of bulk operation" in caplog.text
    assert "not this one" in caplog.text


def test_pause_resume_and_stop(operated: Told) -> None:
    failed(4)
    operation = started("replay", FAILED)
    step(operation, max_rows=1)
    assert bulk.pause(operation.id, by="bert")
    assert not bulk.pause(operation.id)
    assert bulk.WORK.do_chunk(operation.id, max_rows=1) is None
    assert bulk.resume(operation.id, by="bert")
    assert not bulk.resume(operation.id)
    step(operation, max_rows=1)
    assert bulk.stop(operation.id, by="bert")
    assert not bulk.stop(operation.id)
    assert bulk.WORK.do_chunk(operation.id, max_rows=1) is None
    row = BulkOperation.objects.get()
    assert (row.state, row.changed) == ("stopped", 2)
    assert row.finished_at is not None
    assert [told["verb"] for told in operated] == [
        "start bulk replay",
        "pause bulk replay",
        "resume bulk replay",
        "stop bulk replay",
    ]


def test_only_the_job_of_an_operation_works_it_off() -> None:
    failed(2)
    operation = started("replay", FAILED)
    assert bulk.WORK.do_chunk(operation.id, max_rows=1, job=uuid4()) is None
    bulk.pause(operation.id)
    before = BulkOperation.objects.get().job_id
    bulk.resume(operation.id)
    after = BulkOperation.objects.get().job_id
    assert bulk.WORK.do_chunk(operation.id, max_rows=1, job=before) is None
    assert bulk.WORK.do_chunk(operation.id, max_rows=1, job=after) is not None


def test_an_operation_whose_job_was_cancelled_or_failed_can_be_resumed() -> None:
    failed(2)
    operation = started("replay", FAILED)
    job = BulkOperation.objects.get().job_id
    assert job is not None
    assert not bulk.is_abandoned(bulk.get(operation.id))
    operations.cancel([job])
    assert bulk.is_abandoned(bulk.get(operation.id))
    assert bulk.resume(operation.id)
    assert bulk.WORK.fail(operation.id, "ValueError: no luck")
    row = BulkOperation.objects.get()
    assert (row.state, row.error) == ("failed", "ValueError: no luck")
    assert bulk.resume(operation.id)
    row = finished(operation)
    assert (row.state, row.error, row.changed) == ("done", "", 2)


def test_undo_cancels_what_has_not_started() -> None:
    old = failed(3)
    untouched = make()
    operation = started("replay", FAILED)
    with pytest.raises(InvalidArguments, match="still running"):
        bulk.undo(operation.id)
    finished(operation)
    running = QueuedJob.objects.get(replay_of=old[0])
    QueuedJob.objects.filter(id=running.id).update(status="running", attempts=1)
    draft = bulk.draft_undo(operation.id, by="anna")
    assert (draft.kind, draft.state, draft.total) == ("cancel", "draft", 2)
    assert QueuedJob.objects.filter(bulk_operation_id=operation.id).count() == 3
    undone = bulk.undo(operation.id, by="bert")
    assert (undone.kind, undone.state, undone.total) == ("cancel", "queued", 2)
    assert undone.options.undo_of == draft.options.undo_of == operation.id
    assert finished(undone).changed == 2
    left = QueuedJob.objects.filter(job_type_id=ADD)
    assert {job.id for job in left} == {running.id, untouched}
    with pytest.raises(InvalidArguments, match="cannot be undone"):
        bulk.undo(undone.id)
    assert finished(started("replay", FAILED)).changed == 2  # once more


def test_the_end_is_told_with_what_was_really_done(operated: Told) -> None:
    failed(2), failed(1, ONCE)
    operation = started("replay", FAILED, reason="OPS-12")
    finished(operation)
    bulk.WORK.record_end(bulk.get(operation.id))
    told = operated[-1]
    assert (told["verb"], told["by"], told["count"]) == ("end bulk replay", "anna", 2)
    assert told["details"] == {
        "operation": str(operation.id),
        "filter": "archived: status=failed",
        "jobs": 3,
        "reason": "OPS-12",
    }


def test_the_log_says_which_jobs_without_their_secrets() -> None:
    selection = FAILED.also(
        Term("data", "hunter2", path=("user", "password")), Term("attempts", 3, ">=")
    )
    text = "archived: status=failed data.user.password=•••• attempts>=3"
    assert bulk.filter_text(selection) == text
    assert bulk.filter_text(Selection(Table.QUEUED)) == "queued: all"


def test_a_bulk_job_is_a_job_type_like_any_other() -> None:
    row = JobType.objects.get(name="jobqueue.bulk")
    assert (row.priority, row.timeout, row.queue) == (-50, None, "default")
