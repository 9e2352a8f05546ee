"""Unique jobs as producers meet them: refused, returned, and free again."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_jobqueue import (
    DuplicateJob,
    InvalidArguments,
    cancel,
    enqueue,
    enqueue_many,
    operations,
    replay,
)
from django_jobqueue.models import JobType, QueuedJob, UniqueWindow
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)


def refused(call: Any) -> DuplicateJob:
    with pytest.raises(DuplicateJob) as caught:
        call()
    return caught.value


def test_a_second_one_is_refused_with_the_first() -> None:
    first = jobs.add_alone.enqueue(1)
    error = refused(lambda: jobs.add_alone.enqueue(a=1, b=0))
    assert error.job == first
    assert str(error) == (
        f"Job {first.id} of type 'tests.sample.add_alone' is already queued and has "
        "the same data; there can be one at a time, until it is finished. Nothing was "
        "enqueued. With on_duplicate='return' that job is returned instead."
    )
    with CaptureQueriesContext(connection) as captured:
        jobs.add_alone.enqueue(2)
    assert len(captured) == 1
    assert len(queued()) == 2


def test_a_refused_one_leaves_the_transaction_usable() -> None:
    with transaction.atomic():
        jobs.add_alone.enqueue(1)
        refused(lambda: jobs.add_alone.enqueue(1))
        refused(lambda: jobs.add_alone.enqueue_many([{"a": 1}, {"a": 2}]))
        jobs.add_alone.enqueue(3)
    assert [job.data["a"] for job in queued()] == [1, 3]


def test_what_is_there_can_be_returned_instead() -> None:
    """An id of its own is looked at first."""
    first, id = jobs.index.enqueue(7, why="saved"), uuid4()
    assert jobs.index.enqueue(document=7, why="again") == first
    returned = jobs.add_alone.using(on_duplicate="return")
    assert returned.enqueue(1) == returned.enqueue(1)
    refused(lambda: jobs.index.using(on_duplicate="raise").enqueue(7))
    assert len(queued()) == 2
    known = jobs.add_alone.using(id=id).enqueue(2)
    assert jobs.add_alone.using(id=id).enqueue(2) == known
    assert refused(lambda: jobs.add_alone.using(id=uuid4()).enqueue(2)).job == known


def test_it_is_free_again_when_it_is_over_or_claimed(worker: HandDriven) -> None:
    jobs.add_alone.enqueue(1)
    until_the_claim = jobs.index.enqueue(7)
    worker.claim()
    assert "is already running" in str(refused(lambda: jobs.add_alone.enqueue(1)))
    assert jobs.index.enqueue(7).id != until_the_claim.id
    worker.run()
    worker.finish()
    again = jobs.add_alone.enqueue(1)
    cancel([again.id])
    jobs.add_alone.enqueue(1)
    worker.work()
    assert len(archived(status="succeeded")) == 4


def test_a_job_between_two_attempts_is_still_the_one(worker: HandDriven) -> None:
    for attempts, word in ((1, "retry"), (0, "snooze")):
        say = jobs.say.using(unique_key=word)
        first = say.enqueue(word)
        worker.work()
        assert refused(lambda say=say: say.enqueue("cancel")).job.id == first.id
        assert [job.attempts for job in queued(id=first.id)] == [attempts]


def test_a_replay_has_no_key(worker: HandDriven) -> None:
    first = jobs.add_alone.enqueue(1)
    worker.work()
    again = replay(first.id)
    jobs.add_alone.enqueue(1)
    assert len(queued()) == 2
    assert queued(id=again.id)[0].unique_key is None


def test_any_text_can_be_the_key() -> None:
    report = jobs.add.using(unique_key="report 7")
    first = report.enqueue(1)
    error = refused(lambda: report.enqueue(2))
    assert error.job == first
    assert "has the same unique_key 'report 7'; " in str(error)
    by_name = refused(lambda: enqueue(jobs.add.name, {"a": 3}, unique_key="report 7"))
    assert by_name.job == first
    jobs.add.using(unique_key="report 8").enqueue(1)
    jobs.aadd.using(unique_key="report 7").enqueue(1)
    assert len(queued()) == 3


def test_by_name_and_for_operators_it_is_the_same() -> None:
    first = jobs.add_alone.enqueue(1)
    for call in (enqueue, operations.enqueue):
        error = refused(lambda call=call: call(jobs.add_alone.name, {"b": 0, "a": 1}))
        assert error.job == first


def test_of_many_all_are_refused_for_one_duplicate() -> None:
    error = refused(
        lambda: enqueue_many("tests.sample.add_alone", [{"a": 1}, {"a": 1, "b": 0}])
    )
    assert error.job is None
    assert str(error) == (
        "1 of these 2 calls have the same data as another call; nothing was "
        "enqueued. Leave them out, or enqueue with on_duplicate='return'."
    )
    first = jobs.add_alone.enqueue(2)
    error = refused(
        lambda: jobs.add_alone.enqueue_many([{"a": 1}, {"a": 2, "b": 0}, {"a": 3}])
    )
    assert error.job == first
    assert "1 of 3 calls have such a job. Nothing was" in str(error)
    assert len(queued()) == 1


def test_of_many_the_ids_of_those_that_are_there_stand_in_order() -> None:
    first = jobs.index.enqueue(2)
    ids = jobs.index.enqueue_many([{"document": n} for n in (1, 2, 3, 1, 2)])
    assert ids[1] == ids[4] == first.id
    assert ids[0] == ids[3]
    assert (ids.new, ids.replaced, ids.existing) == ([ids[0], ids[2]], [], [first.id])
    assert {job.data["document"]: job.id for job in queued()} == dict(
        zip([1, 2, 3], ids[:3], strict=True)
    )
    plain = jobs.add.enqueue_many([{"a": 1}, {"a": 1}])
    assert (plain.new, plain.replaced, plain.existing) == (plain, [], [])
    assert jobs.index.enqueue_many([]).new == []


def test_types_whose_row_is_missing_get_one() -> None:
    """Their code was deployed, and nobody has migrated or started a worker yet."""
    some = (jobs.add, jobs.aadd, jobs.index, jobs.settle, jobs.remind)
    JobType.objects.filter(name__in=[handler.name for handler in some]).delete()
    assert len(jobs.index.enqueue_many([{"document": 1}, {"document": 2}])) == 2
    assert jobs.remind.enqueue(1).is_new
    assert jobs.settle.enqueue(1).is_new
    assert UniqueWindow.objects.count() == 1
    jobs.add.enqueue(1), jobs.aadd.enqueue_many([{"a": 1}])
    assert len(queued()) == 6
    QueuedJob.objects.all().delete()
    JobType.objects.filter(name=jobs.settle.name).delete()  # a moment later
    assert jobs.settle.enqueue(1).is_new


def test_many_cannot_have_what_one_job_has() -> None:
    options: list[dict[str, Any]] = [{"id": uuid4()}, {"unique_key": "x"}]
    for option in options:
        with pytest.raises(InvalidArguments) as caught:
            jobs.add.using(**option).enqueue_many([{"a": 1}])
        text = f"{next(iter(option))} is for one job, not for enqueue_many."
        assert str(caught.value) == text
