"""Unique windows: keys that are held for a time, or forever."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue import (
    DuplicateJob,
    cancel,
    get_job,
    operations,
    replay,
)
from django_jobqueue.models import ArchivedJob, QueuedJob, UniqueWindow
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)


def only() -> QueuedJob:
    """The one queued job."""
    (row,) = QueuedJob.objects.all()
    return row


def seconds_until(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - timezone.now()).total_seconds()


def test_a_window_lets_one_job_through_also_when_it_is_over(
    worker: HandDriven,
) -> None:
    first = jobs.remind.enqueue(1)
    worker.work()

    again = jobs.remind.enqueue(1, why="another")

    assert (again.id, again.status) == (first.id, "succeeded")
    assert (again.is_new, again.is_replaced) == (False, False)
    assert jobs.remind.enqueue(2).is_new
    assert seconds_until(UniqueWindow.objects.get(job_id=first.id).held_until) > 295


def test_when_its_window_is_over_the_next_job_comes_though_the_first_waits() -> None:
    first = jobs.remind.enqueue(1)
    UniqueWindow.objects.update(held_until=timezone.now())

    second = jobs.remind.enqueue(1)

    assert second.is_new
    assert UniqueWindow.objects.get().job_id == second.id
    assert {row.id for row in queued()} == {first.id, second.id}


@pytest.mark.parametrize("end", ["succeeded", "cancelled", "replayed"])
def test_a_key_forever_is_held_whatever_becomes_of_the_job(
    worker: HandDriven, end: str
) -> None:
    first = jobs.greet_once.enqueue(1)
    if end == "cancelled":
        cancel([first.id])
    worker.work()
    if end == "replayed":
        assert replay(first.id).is_new is False
        worker.work()

    with pytest.raises(DuplicateJob) as caught:
        jobs.greet_once.enqueue(1)

    assert caught.value.job.id == first.id
    assert f"Job {first.id} of type 'tests.sample.greet_once' is already " in str(
        caught.value
    )
    assert "the same user; there can be only one, forever. Nothing was" in str(
        caught.value
    )


def test_a_duplicate_in_a_window_says_until_when() -> None:
    jobs.remind.enqueue(1)
    with pytest.raises(DuplicateJob) as caught:
        jobs.remind.using(on_duplicate="raise").enqueue(1)
    until = UniqueWindow.objects.get().held_until
    assert f"there can be no other until {until}" in str(caught.value)


def test_a_window_outlives_the_record_of_its_job(worker: HandDriven) -> None:
    first = jobs.remind.enqueue(1)
    worker.work()
    ArchivedJob.objects.all().delete()

    again = jobs.remind.enqueue(1)

    assert (again.id, again.status, again.is_new) == (first.id, "pruned", False)
    assert again.is_over
    assert abs(again.created_at - first.created_at) < SECOND


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
    insert = """
        INSERT INTO jobqueue_queuedjob (job_type, data)
        VALUES ('tests.sample.remind', '{"user": 1}')
    """
    with connection.cursor() as cursor:
        cursor.execute(insert)
        cursor.execute(insert)
    assert jobs.remind.enqueue(1).id == only().id
    assert only().unique_key is None
    UniqueWindow.objects.update(held_until=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(insert)
    assert QueuedJob.objects.count() == 2
