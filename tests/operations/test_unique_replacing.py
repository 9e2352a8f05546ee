"""Unique jobs whose duplicates replace their data, debounced ones, and windows: keys
that are held for a time, or forever."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue import (
    DuplicateJob,
    Handler,
    cancel,
    enqueue,
    enqueue_many,
    get_job,
    operations,
    replay,
    signals,
)
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, UniqueWindow
from django_jobqueue.store.queue import insert_replace
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)


def only() -> QueuedJob:
    """The one queued job."""
    (row,) = QueuedJob.objects.all()
    return row


def is_in(seconds: float, moment: datetime | None, began: datetime) -> bool:
    """Whether a moment is so long after now, for a now since the test began."""
    assert moment is not None
    return began <= moment - timedelta(seconds=seconds) <= timezone.now()


def test_a_duplicate_replaces_the_data_of_the_waiting_job() -> None:
    """And whatever else its call said, in one statement."""
    more = jobs.render.using(tags=["a"], metadata={"n": 1}, expires_in=9)
    first = more.using(enqueued_by="eve").enqueue(7, why="saved")
    eve = jobs.render.using(tags=["b"], metadata={"n": 2}, enqueued_by="eve")
    with CaptureQueriesContext(connection) as captured:
        again = eve.enqueue(7, why="again")
    assert len(captured) == 1
    assert (first.is_new, first.is_replaced) == (True, False)
    assert (again.is_new, again.is_replaced) == (False, True)
    row = only()
    assert again.id == first.id == row.id
    assert again.data == row.data == {"document": 7, "why": "again"}
    assert (row.tags, row.metadata, row.enqueued_by) == (["b"], {"n": 2}, "eve")
    assert (again.run_after, again.created_at) == (first.run_after, first.created_at)
    jobs.render.enqueue(7)
    row = only()
    assert (row.tags, row.metadata, row.enqueued_by) == (None, None, None)
    assert row.expires_at is None


@pytest.mark.parametrize("handler", [jobs.render, jobs.settle])
def test_a_running_job_is_not_replaced_and_another_waits(
    worker: HandDriven, handler: Handler[..., Any]
) -> None:
    first = handler.enqueue(7, why="old")
    operations.run_now([first.id])
    worker.claim()
    second, third = (handler.enqueue(7, why=why) for why in ("new", "newest"))
    assert (second.is_new, second.id != first.id) == (True, True)
    assert third.id == second.id
    operations.run_now([second.id])
    worker.work()
    assert [row.data["why"] for row in archived()] == ["old", "newest"]


def test_a_retry_or_a_claimed_job_is_not_replaced(worker: HandDriven) -> None:
    say = jobs.say.using(unique_key="mine", on_duplicate="replace")
    first = say.enqueue("retry")
    worker.work()
    assert say.enqueue("retry").id != first.id
    assert get_job(first.id).attempts == 1
    keyed = jobs.add.using(unique_key="x")
    replacing = keyed.using(on_duplicate="replace")
    first = keyed.enqueue(1)
    assert (first.is_new, first.is_replaced) == (True, False)
    assert replacing.enqueue(2).id == first.id
    worker.claim()
    with pytest.raises(DuplicateJob) as caught:
        replacing.enqueue(3)
    assert caught.value.job.id == first.id
    found = get_job(first.id)
    assert (found.data, found.is_new, found.is_replaced) == ({"a": 2}, False, False)
    worker.work()


def test_a_replacement_keeps_the_time_unless_it_has_one_of_its_own() -> None:
    began = timezone.now()
    later = jobs.render.using(run_after=timedelta(hours=1)).enqueue(7)
    assert jobs.render.enqueue(7).run_after == later.run_after
    sooner = jobs.render.using(run_after=timedelta(minutes=5)).enqueue(7)
    assert is_in(300, sooner.run_after, began)
    assert only().run_after == sooner.run_after


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("handler", [jobs.render, jobs.settle])
def test_a_job_of_another_queue_moves_to_that_of_the_last_call(
    many: bool, known: bool, handler: Handler[..., Any]
) -> None:
    """Nothing stays of what another caller has chosen there."""
    theirs = {"queue": "theirs", "priority": -7, "timeout": 9, "max_attempts": 2}
    late = {} if handler is jobs.settle else {"run_after": timedelta(days=9_000)}
    if known:
        handler.enqueue(1)
    of_others = handler.using(**theirs, **late, on_success=jobs.report)
    first = of_others.enqueue(7, why="old")
    began = timezone.now()
    if many:
        made = handler.enqueue_many([{"document": 7, "why": "new"}])
        assert made.replaced == [first.id]
    else:
        again = handler.enqueue(7, why="new")
        assert (again.id, again.is_replaced) == (first.id, True)
        assert (again.queue, again.priority, again.timeout) == ("default", 0, None)
    row = QueuedJob.objects.get(pk=first.id)
    assert (row.queue, row.priority, row.data["why"]) == ("default", 0, "new")
    assert (row.timeout, row.max_attempts, row.followers) == (None, None, None)
    assert is_in(30 if handler is jobs.settle else 0, row.run_after, began)


@pytest.mark.parametrize("many", [False, True])
def test_a_replacement_lives_as_long_as_its_call_says(many: bool) -> None:
    """From when it is due: the new data never expire with the old ones."""
    began = timezone.now()

    def call(**options: Any) -> None:
        handler = jobs.render.using(**options)
        handler.enqueue_many([{"document": 7}]) if many else handler.enqueue(7)

    call(run_after=timedelta(hours=1), expires_in=60)
    call(expires_in=120)
    assert only().expires_at == only().run_after + timedelta(seconds=120)
    QueuedJob.objects.update(run_after=timezone.now() - timedelta(hours=1))
    call(expires_in=60)
    assert is_in(60, only().expires_at, began)
    moment = timezone.now() + timedelta(days=1)
    call(expires_at=moment)
    assert only().expires_at == moment
    call()
    assert only().expires_at is None


def test_of_many_equal_calls_the_last_data_win() -> None:
    first = jobs.render.enqueue(1, why="old")
    calls = [
        {"document": n, "why": w} for n, w in [(1, "a"), (2, "b"), (1, "c"), (2, "d")]
    ]
    ids = jobs.render.enqueue_many(calls)
    assert ids[0] == ids[2] == first.id
    assert ids[1] == ids[3]
    assert (ids.new, ids.replaced, ids.existing) == ([ids[1]], [first.id], [])
    data = {row.data["document"]: row.data["why"] for row in queued()}
    assert data == {1: "c", 2: "d"}


def test_signals_are_of_new_jobs_alone() -> None:
    told: list[Any] = []

    def hear(**arguments: Any) -> None:
        told.append(arguments.get("ids") or arguments["job"])

    heard = (signals.job_enqueued, signals.jobs_enqueued)
    for signal in heard:
        signal.connect(hear)
    try:
        wanted: list[Any] = []
        for handler in (jobs.settle, jobs.index):
            first = handler.enqueue(7)
            handler.enqueue(7)
            calls = [{"document": 7}, {"document": 8}]
            wanted += [first, [handler.enqueue_many(calls)[1]]]
            handler.enqueue_many(calls)
        wanted.append(jobs.remind.enqueue(1))
        jobs.remind.enqueue(1)
    finally:
        for signal in heard:
            signal.disconnect(hear)
    assert told == wanted


def test_a_debounced_job_is_due_when_the_calls_have_stopped() -> None:
    began = timezone.now()
    first = jobs.settle.enqueue(7, why="a")
    assert is_in(30, first.run_after, began)
    QueuedJob.objects.update(run_after=timezone.now() + SECOND)
    again = jobs.settle.using(expires_in=10).enqueue(7, why="b")
    assert (again.id, again.is_replaced) == (first.id, True)
    assert is_in(30, again.run_after, began)
    assert again.expires_at == again.run_after + timedelta(seconds=10)
    assert only().data["why"] == "b"


def test_a_debounced_job_waits_no_longer_than_its_maximum() -> None:
    jobs.settle.enqueue(7)
    for seconds in (290, 295):
        begun = timezone.now() - timedelta(seconds=seconds)
        QueuedJob.objects.update(created_at=begun)
        if seconds == 290:
            jobs.settle.enqueue_many([{"document": 7}])
        else:
            jobs.settle.enqueue(7)
        assert only().run_after == begun + timedelta(seconds=300)


def test_any_job_can_be_debounced_by_a_key_of_its_own_also_by_plain_sql() -> None:
    began = timezone.now()
    keyed = jobs.add.using(debounce=timedelta(minutes=1)).using(unique_key="sum")
    first, again = keyed.enqueue(1), keyed.enqueue(2)
    assert first.id == again.id
    assert only().data == {"a": 2}
    assert is_in(60, only().run_after, began)
    QueuedJob.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) "
            "VALUES ('tests.sample.settle', '{\"document\": 1}')"
        )
    assert is_in(30, only().run_after, began)
    assert jobs.settle.enqueue(1, why="again").id == only().id


def test_what_is_rolled_back_holds_no_key_and_replaces_nothing() -> None:
    jobs.render.enqueue(7, why="kept")
    with transaction.atomic():
        with transaction.atomic():
            jobs.remind.enqueue(1)
            jobs.render.enqueue(7, why="lost")
            transaction.set_rollback(True)
        assert jobs.remind.enqueue(1).is_new
        first = jobs.settle.enqueue(7, why="a")
        assert jobs.settle.enqueue(7, why="b").is_replaced
        assert jobs.settle.enqueue_many([{"document": 7, "why": "c"}]) == [first.id]
        transaction.set_rollback(True)
    assert jobs.remind.enqueue(1).is_new
    assert QueuedJob.objects.get(job_type=jobs.render.name).data["why"] == "kept"
    assert not QueuedJob.objects.filter(job_type=jobs.settle.name).exists()


def test_a_process_without_the_handler_goes_by_the_row() -> None:
    data = {"document": 1, "user": 1}
    for name in ("render", "settle", "remind"):
        rule = JobType.objects.get(name=f"tests.sample.{name}").unique_rule
        other = f"elsewhere.{name}"
        JobType.objects.create(name=other, unique_rule=rule)
        first = enqueue(other, data)
        again = enqueue(other, {**data, "why": "again"})
        assert (again.id, again.is_replaced) == (first.id, name != "remind")
        assert enqueue_many(other, [data]) == [first.id]
    rule = JobType.objects.get(name=jobs.greet_once.name).unique_rule
    JobType.objects.create(name="elsewhere.once", unique_rule=rule)
    first = enqueue("elsewhere.once", data, on_duplicate=None)
    with pytest.raises(DuplicateJob):
        enqueue("elsewhere.once", data)
    ids = enqueue_many("elsewhere.once", [data], on_duplicate="return")
    assert ids == [first.id]


def test_a_type_with_an_expiry_keeps_it_however_often_it_was_looked_up() -> None:
    JobType.objects.filter(name=jobs.settle.name).update(expires_in=SECOND)
    insert_replace._known.clear()  # private: as in a process that just began
    for _ in range(3):
        made = jobs.settle.enqueue(1)
        assert made.expires_at == made.run_after + SECOND
        assert only().expires_at == made.expires_at


def test_jobs_that_run_at_once_are_always_new() -> None:
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        assert jobs.settle.enqueue(1).is_new
        assert jobs.remind.enqueue(1).is_new
        assert jobs.remind.enqueue(1).is_new
        ids = jobs.render.enqueue_many([{"document": 1}] * 2)
    assert ids.new == ids
    assert not UniqueWindow.objects.exists()


# Windows.


ENDS = ("succeeded", "cancelled", "replayed")


def test_a_window_lets_one_job_through_even_if_pruned(worker: HandDriven) -> None:
    began = timezone.now()
    first = jobs.remind.enqueue(1)
    worker.work()
    again = jobs.remind.enqueue(1, why="another")
    assert (again.id, again.status) == (first.id, "succeeded")
    assert (again.is_new, again.is_replaced) == (False, False)
    assert jobs.remind.enqueue(2).is_new
    window = UniqueWindow.objects.get(job_id=first.id)
    assert is_in(300, window.held_until, began)
    with pytest.raises(DuplicateJob) as caught:
        jobs.remind.using(on_duplicate="raise").enqueue(1)
    until = f"there can be no other until {window.held_until}"
    assert until in str(caught.value)
    ArchivedJob.objects.all().delete()
    again = jobs.remind.enqueue(1)
    assert (again.id, again.status, again.is_new) == (first.id, "pruned", False)
    assert again.is_over
    assert abs(again.created_at - first.created_at) < SECOND


def test_when_its_window_is_over_the_next_job_comes_though_the_first_waits() -> None:
    first = jobs.remind.enqueue(1)
    UniqueWindow.objects.update(held_until=timezone.now())
    second = jobs.remind.enqueue(1)
    assert second.is_new
    assert UniqueWindow.objects.get().job_id == second.id
    assert {row.id for row in queued()} == {first.id, second.id}


def test_a_key_forever_is_held(worker: HandDriven) -> None:
    made = {end: jobs.greet_once.enqueue(n) for n, end in enumerate(ENDS)}
    cancel([made["cancelled"].id])
    worker.work()
    assert replay(made["replayed"].id).is_new is False
    worker.work()
    for number, end in enumerate(ENDS):
        with pytest.raises(DuplicateJob) as caught:
            jobs.greet_once.enqueue(number)
        assert caught.value.job == get_job(made[end].id)
        text = str(caught.value)
        begin = f"Job {made[end].id} of type 'tests.sample.greet_once' is already "
        assert text.startswith(begin)
        assert "the same user; there can be only one, forever. Nothing was" in text


def test_of_many_a_window_lets_the_first_of_equals_through() -> None:
    first = jobs.remind.enqueue(1)
    ids = jobs.remind.enqueue_many(
        [{"user": 1}, {"user": 2, "why": "a"}, {"user": 2, "why": "b"}]
    )
    assert ids == [first.id, ids[1], ids[1]]
    assert (ids.new, ids.existing) == ([ids[1]], [first.id])
    assert get_job(ids[1]).data["why"] == "a"
    with pytest.raises(DuplicateJob, match="1 of 1 calls have such a job"):
        jobs.remind.using(on_duplicate="raise").enqueue_many([{"user": 1}])


def test_a_freed_key_can_be_used_again(worker: HandDriven) -> None:
    reminder, greeting = jobs.remind.enqueue(1), jobs.greet_once.enqueue(1)
    alone, plain = jobs.add_alone.enqueue(1), jobs.add.enqueue(1)
    worker.work()
    waiting = jobs.add_alone.enqueue(1)
    ids = [reminder.id, greeting.id, alone.id, plain.id, waiting.id]
    freed = operations.free_keys(ids, by="eve")
    assert set(freed) == {reminder.id, greeting.id, waiting.id}
    assert operations.free_keys(ids) == []
    assert jobs.remind.enqueue(1).is_new
    assert jobs.greet_once.enqueue(1).is_new
    assert jobs.add_alone.enqueue(1).is_new


def test_plain_sql_opens_a_window_and_leaves_a_duplicate_out() -> None:
    def insert() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO jobqueue_queuedjob (job_type, data) "
                "VALUES ('tests.sample.remind', '{\"user\": 1}')"
            )

    insert(), insert()
    assert jobs.remind.enqueue(1).id == only().id
    assert only().unique_key is None
    UniqueWindow.objects.update(held_until=timezone.now())
    insert()
    assert QueuedJob.objects.count() == 2
