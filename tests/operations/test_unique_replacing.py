"""Unique jobs whose duplicates replace their data, and debounced ones."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue import (
    DuplicateJob,
    enqueue,
    enqueue_many,
    get_job,
    operations,
    signals,
)
from django_jobqueue.models import JobType, QueuedJob, UniqueWindow
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


def seconds_until(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - timezone.now()).total_seconds()


def test_a_duplicate_replaces_the_data_of_the_waiting_job() -> None:
    first = jobs.render.using(tags=["a"], metadata={"n": 1}).enqueue(7, why="saved")
    again = jobs.render.using(tags=["b"], metadata={"n": 2}, enqueued_by="eve").enqueue(
        7, why="again"
    )

    assert (first.is_new, first.is_replaced) == (True, False)
    assert (again.is_new, again.is_replaced) == (False, True)
    assert again.id == first.id == only().id
    assert again.data == only().data == {"document": 7, "why": "again"}
    assert (only().tags, only().metadata, only().enqueued_by) == (
        ["b"],
        {"n": 2},
        "eve",
    )
    assert (again.run_after, again.created_at) == (first.run_after, first.created_at)


def test_a_replacement_is_one_statement() -> None:
    jobs.render.enqueue(7)
    with CaptureQueriesContext(connection) as captured:
        jobs.render.enqueue(7, why="again")
    assert len(captured) == 1


def test_a_job_that_is_there_is_neither_new_nor_replaced() -> None:
    jobs.index.enqueue(7)
    existing = jobs.index.enqueue(7)
    assert (existing.is_new, existing.is_replaced) == (False, False)
    assert (get_job(existing.id).is_new, get_job(existing.id).is_replaced) == (
        False,
        False,
    )


def test_in_async_code_the_answer_is_the_same() -> None:
    async def calls() -> list[Any]:
        made = [await jobs.render.aenqueue(7), await jobs.render.aenqueue(7)]
        await sync_to_async(connections.close_all)()
        return made

    first, again = asyncio.run(calls())
    assert (first.is_new, again.is_new, again.is_replaced) == (True, False, True)


def test_a_running_job_is_not_replaced_and_another_waits(worker: HandDriven) -> None:
    first = jobs.render.enqueue(7, why="old")
    worker.claim()

    second = jobs.render.enqueue(7, why="new")
    third = jobs.render.enqueue(7, why="newest")

    assert second.is_new
    assert second.id != first.id
    assert third.id == second.id
    worker.work()
    assert [row.data["why"] for row in archived()] == ["old", "newest"]


def test_a_retry_has_no_key_and_keeps_its_data(worker: HandDriven) -> None:
    say = jobs.say.using(unique_key="mine", on_duplicate="replace")
    first = say.enqueue("retry")
    worker.work()

    assert say.enqueue("retry").id != first.id
    assert get_job(first.id).attempts == 1


def test_a_job_that_another_rule_let_run_is_a_duplicate(worker: HandDriven) -> None:
    keyed = jobs.add.using(unique_key="x")
    first = keyed.enqueue(1)
    assert keyed.using(on_duplicate="replace").enqueue(2).id == first.id
    worker.claim()

    with pytest.raises(DuplicateJob) as caught:
        keyed.using(on_duplicate="replace").enqueue(3)
    assert caught.value.job.id == first.id
    assert get_job(first.id).data == {"a": 2}
    worker.work()


def test_a_replacement_keeps_the_time_unless_it_has_one_of_its_own() -> None:
    later = jobs.render.using(run_after=timedelta(hours=1)).enqueue(7)
    assert jobs.render.enqueue(7).run_after == later.run_after

    sooner = jobs.render.using(run_after=timedelta(minutes=5)).enqueue(7)

    assert 290 < seconds_until(sooner.run_after) <= 300
    assert only().run_after == sooner.run_after


@pytest.mark.parametrize("many", [False, True])
def test_a_replacement_lives_as_long_as_its_call_says(many: bool) -> None:
    """From when it is due: the new data never expire with the old ones."""

    def call(**options: Any) -> None:
        handler = jobs.render.using(**options)
        if many:
            handler.enqueue_many([{"document": 7}])
        else:
            handler.enqueue(7)

    call(run_after=timedelta(hours=1), expires_in=60)
    call(expires_in=120)
    assert only().expires_at == only().run_after + timedelta(seconds=120)
    QueuedJob.objects.update(run_after=timezone.now() - timedelta(hours=1))
    call(expires_in=60)
    assert 55 < seconds_until(only().expires_at) <= 60
    moment = timezone.now() + timedelta(days=1)
    call(expires_at=moment)
    assert only().expires_at == moment
    call()
    assert only().expires_at is None


def test_of_many_equal_calls_the_last_data_win() -> None:
    first = jobs.render.enqueue(1, why="old")

    ids = jobs.render.enqueue_many(
        [
            {"document": 1, "why": "a"},
            {"document": 2, "why": "b"},
            {"document": 1, "why": "c"},
            {"document": 2, "why": "d"},
        ]
    )

    assert ids[0] == ids[2] == first.id
    assert ids[1] == ids[3]
    assert (ids.new, ids.replaced, ids.existing) == ([ids[1]], [first.id], [])
    data = {row.data["document"]: row.data["why"] for row in queued()}
    assert data == {1: "c", 2: "d"}


def test_of_many_the_answer_says_which_are_new() -> None:
    first = jobs.index.enqueue(1)
    ids = jobs.index.enqueue_many([{"document": n} for n in (1, 2, 2)])
    assert (ids.new, ids.replaced, ids.existing) == ([ids[1]], [], [first.id])
    plain = jobs.add.enqueue_many([{"a": 1}, {"a": 1}])
    assert (plain.new, plain.replaced, plain.existing) == (plain, [], [])
    assert jobs.index.enqueue_many([]).new == []


def test_signals_are_of_new_jobs_alone() -> None:
    told: list[Any] = []

    def hear(**arguments: Any) -> None:
        told.append(arguments.get("ids") or arguments["job"])

    heard = (signals.job_enqueued, signals.jobs_enqueued)
    for signal in heard:
        signal.connect(hear)
    try:
        first = jobs.settle.enqueue(7)
        jobs.settle.enqueue(7)
        ids = jobs.settle.enqueue_many([{"document": 7}, {"document": 8}])
        reminder = jobs.remind.enqueue(1)
        jobs.remind.enqueue(1)
    finally:
        for signal in heard:
            signal.disconnect(hear)
    assert told == [first, [ids[1]], reminder]


def test_a_debounced_job_is_due_when_the_calls_have_stopped() -> None:
    first = jobs.settle.enqueue(7, why="a")
    assert 25 < seconds_until(first.run_after) <= 30
    QueuedJob.objects.update(run_after=timezone.now() + SECOND)

    again = jobs.settle.enqueue(7, why="b")

    assert again.id == first.id
    assert again.is_replaced
    assert 25 < seconds_until(again.run_after) <= 30
    assert only().data["why"] == "b"


@pytest.mark.parametrize("many", [False, True])
def test_a_debounced_job_waits_no_longer_than_its_maximum(many: bool) -> None:
    jobs.settle.enqueue(7)
    begun = timezone.now() - timedelta(seconds=290)
    QueuedJob.objects.update(created_at=begun)

    if many:
        jobs.settle.enqueue_many([{"document": 7}])
    else:
        jobs.settle.enqueue(7)

    assert only().run_after == begun + timedelta(seconds=300)


def test_a_debounced_job_expires_after_it_is_due() -> None:
    for _ in range(2):
        made = jobs.settle.using(expires_in=10).enqueue(7)
        assert made.expires_at == made.run_after + timedelta(seconds=10)


def test_after_its_start_a_debounced_job_is_made_anew(worker: HandDriven) -> None:
    first = jobs.settle.enqueue(7)
    operations.run_now([first.id])
    worker.claim()
    second = jobs.settle.enqueue(7)
    assert second.is_new
    assert second.id != first.id
    worker.work()


def test_any_job_can_be_debounced_by_a_key_of_its_own() -> None:
    keyed = jobs.add.using(debounce=timedelta(minutes=1)).using(unique_key="sum")
    first, again = keyed.enqueue(1), keyed.enqueue(2)
    assert first.id == again.id
    assert only().data == {"a": 2}
    assert 55 < seconds_until(only().run_after) <= 60


def test_what_is_rolled_back_holds_no_key_and_replaces_nothing() -> None:
    jobs.render.enqueue(7, why="kept")
    with transaction.atomic():
        jobs.add.enqueue(1)
        with transaction.atomic():
            jobs.remind.enqueue(1)
            jobs.render.enqueue(7, why="lost")
            transaction.set_rollback(True)
        assert jobs.remind.enqueue(1).is_new
        jobs.settle.enqueue(3)
        transaction.set_rollback(True)

    assert jobs.remind.enqueue(1).is_new
    assert QueuedJob.objects.get(job_type=jobs.render.name).data["why"] == "kept"
    assert not QueuedJob.objects.filter(job_type=jobs.settle.name).exists()


def test_one_transaction_may_replace_what_it_made() -> None:
    with transaction.atomic():
        first = jobs.settle.enqueue(7, why="a")
        assert jobs.settle.enqueue(7, why="b").is_replaced
        assert jobs.settle.enqueue_many([{"document": 7, "why": "c"}]) == [first.id]
    assert only().data["why"] == "c"


@pytest.mark.parametrize("name", ["render", "settle", "remind", "greet_once"])
def test_a_process_without_the_handler_goes_by_the_row(name: str) -> None:
    rule = JobType.objects.get(name=f"tests.sample.{name}").unique_rule
    JobType.objects.create(name="elsewhere.x", unique_rule=rule)
    data = {"document": 1, "user": 1}
    first = enqueue("elsewhere.x", data, on_duplicate=None)

    if name == "greet_once":
        with pytest.raises(DuplicateJob):
            enqueue("elsewhere.x", data)
        ids = enqueue_many("elsewhere.x", [data], on_duplicate="return")
    else:
        again = enqueue("elsewhere.x", {**data, "why": "again"})
        assert again.id == first.id
        assert again.is_replaced is (name != "remind")
        ids = enqueue_many("elsewhere.x", [data])
    assert ids == [first.id]


def test_plain_sql_debounces_the_first_call() -> None:
    with connection.cursor() as cursor:
        cursor.execute("""
            INSERT INTO jobqueue_queuedjob (job_type, data)
            VALUES ('tests.sample.settle', '{"document": 1}')
        """)
    assert 25 < seconds_until(only().run_after) <= 30
    assert jobs.settle.enqueue(1, why="again").id == only().id


def test_a_type_without_a_row_is_declared_first() -> None:
    JobType.objects.filter(name__in=[jobs.settle.name, jobs.remind.name]).delete()
    assert jobs.remind.enqueue(1).is_new
    assert jobs.settle.enqueue(1).is_new
    assert UniqueWindow.objects.count() == 1


def test_a_row_that_went_a_moment_ago_is_declared_again() -> None:
    jobs.settle.enqueue(1)
    QueuedJob.objects.all().delete()
    JobType.objects.filter(name=jobs.settle.name).delete()
    assert jobs.settle.enqueue(1).is_new
    assert only().queue == "default"


def test_a_type_with_an_expiry_keeps_it_however_often_it_was_looked_up() -> None:
    JobType.objects.filter(name=jobs.settle.name).update(expires_in=SECOND)
    insert_replace._known.clear()
    for _ in range(3):
        made = jobs.settle.enqueue(1)
        assert made.expires_at == made.run_after + SECOND
        assert only().expires_at == made.expires_at


def test_what_a_call_said_before_goes_with_its_data() -> None:
    more = jobs.settle.using(tags=["a"], metadata={"n": 1}, expires_in=9)
    more.using(enqueued_by="eve").enqueue(1, why="a")
    jobs.settle.enqueue(1, why="b")
    row = only()
    assert (row.tags, row.metadata, row.enqueued_by, row.expires_at) == (
        None,
        None,
        None,
        None,
    )


def test_jobs_that_run_at_once_are_always_new() -> None:
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        assert jobs.settle.enqueue(1).is_new
        assert jobs.remind.enqueue(1).is_new
        assert jobs.remind.enqueue(1).is_new
        ids = jobs.render.enqueue_many([{"document": 1}] * 2)
    assert ids.new == ids
    assert not UniqueWindow.objects.exists()
