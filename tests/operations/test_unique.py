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
    signals,
)
from django_jobqueue.models import JobType, QueuedJob
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
        "enqueued. With on_duplicate='return' that job is "
        "returned instead."
    )
    jobs.add_alone.enqueue(2)
    assert len(queued()) == 2


def test_a_refused_one_leaves_the_transaction_usable() -> None:
    with transaction.atomic():
        jobs.add_alone.enqueue(1)
        refused(lambda: jobs.add_alone.enqueue(1))
        jobs.add_alone.enqueue(2)
    assert len(queued()) == 2


def test_one_that_is_new_is_one_statement() -> None:
    jobs.add_alone.enqueue(0)
    with CaptureQueriesContext(connection) as captured:
        jobs.add_alone.enqueue(1)
    assert len(captured) == 1


def test_what_is_there_can_be_returned_instead() -> None:
    first = jobs.index.enqueue(7, why="saved")
    assert jobs.index.enqueue(document=7, why="again") == first
    assert jobs.add_alone.using(on_duplicate="return").enqueue(1) == (
        jobs.add_alone.using(on_duplicate="return").enqueue(1)
    )
    refused(lambda: jobs.index.using(on_duplicate="raise").enqueue(7))
    assert len(queued()) == 2


def test_nobody_is_told_of_a_job_that_was_there() -> None:
    told: list[Any] = []

    def hear(**arguments: Any) -> None:
        told.append(arguments)

    for signal in (signals.job_enqueued, signals.jobs_enqueued):
        signal.connect(hear)
    try:
        first = jobs.index.enqueue(7)
        jobs.index.enqueue(7)
        ids = jobs.index.enqueue_many([{"document": 7}, {"document": 8}])
        jobs.index.enqueue_many([{"document": 7}, {"document": 8}])
    finally:
        for signal in (signals.job_enqueued, signals.jobs_enqueued):
            signal.disconnect(hear)
    assert [t.get("job") or t["ids"] for t in told] == [first, [ids[1]]]
    assert [t["sender"] for t in told] == [jobs.index, jobs.index]


def test_it_may_be_enqueued_again_when_it_is_over(worker: HandDriven) -> None:
    jobs.add_alone.enqueue(1)
    worker.claim()
    assert "is already running" in str(refused(lambda: jobs.add_alone.enqueue(1)))
    worker.run()
    worker.finish()
    jobs.add_alone.enqueue(1)
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"] * 2


def test_or_when_it_is_claimed(worker: HandDriven) -> None:
    first = jobs.index.enqueue(7)
    worker.claim()
    second = jobs.index.enqueue(7)
    assert second.id != first.id
    worker.work()
    assert len(archived()) == 2


def test_a_cancelled_one_is_out_of_the_way() -> None:
    first = jobs.add_alone.enqueue(1)
    cancel([first.id])
    assert jobs.add_alone.enqueue(1).id != first.id


@pytest.mark.parametrize("word", ["retry", "snooze"])
def test_a_job_that_waits_for_its_next_attempt_is_still_the_one(
    worker: HandDriven, word: str
) -> None:
    say = jobs.say.using(unique_key="mine")
    first = say.enqueue(word)
    worker.work()

    assert refused(lambda: say.enqueue(word)).job.id == first.id
    assert [job.attempts for job in queued()] == [1 if word == "retry" else 0]


def test_a_replay_has_no_key(worker: HandDriven) -> None:
    first = jobs.add_alone.enqueue(1)
    worker.work()
    again = replay(first.id)
    jobs.add_alone.enqueue(1)
    assert len(queued()) == 2
    assert queued(id=again.id)[0].unique_key is None


def test_any_text_can_be_the_key() -> None:
    first = jobs.add.using(unique_key="report 7").enqueue(1)
    error = refused(lambda: jobs.add.using(unique_key="report 7").enqueue(2))
    assert error.job == first
    assert "has the same unique_key 'report 7'; " in str(error)
    assert (
        refused(
            lambda: enqueue("tests.sample.add", {"a": 3}, unique_key="report 7")
        ).job
        == first
    )
    jobs.add.using(unique_key="report 8").enqueue(1)
    jobs.aadd.using(unique_key="report 7").enqueue(1)
    assert len(queued()) == 3


def test_a_key_of_a_type_that_another_process_knows() -> None:
    JobType.objects.create(name="elsewhere.report")
    made = enqueue("elsewhere.report", {}, unique_key="x", unique_until="started")
    again = enqueue("elsewhere.report", {}, unique_key="x", on_duplicate="return")
    assert again == made
    assert queued()[0].unique_until_started is True


def test_by_name_it_is_the_same() -> None:
    first = jobs.add_alone.enqueue(1)
    assert (
        refused(lambda: enqueue("tests.sample.add_alone", {"b": 0, "a": 1})).job
        == first
    )


def test_an_id_of_its_own_is_looked_at_first() -> None:
    id = uuid4()
    first = jobs.add_alone.using(id=id).enqueue(1)
    assert jobs.add_alone.using(id=id).enqueue(1) == first
    assert refused(lambda: jobs.add_alone.using(id=uuid4()).enqueue(1)).job == first


def test_of_many_all_are_refused_for_one_that_is_there() -> None:
    first = jobs.add_alone.enqueue(2)

    error = refused(
        lambda: jobs.add_alone.enqueue_many([{"a": 1}, {"a": 2, "b": 0}, {"a": 3}])
    )

    assert error.job == first
    assert "until it is finished. 1 of 3 calls have such a job. Nothing was" in str(
        error
    )
    assert len(queued()) == 1


def test_of_many_all_are_refused_for_two_that_are_the_same() -> None:
    error = refused(
        lambda: enqueue_many("tests.sample.add_alone", [{"a": 1}, {"a": 1, "b": 0}])
    )

    assert error.job is None
    assert str(error) == (
        "1 of these 2 calls have the same data as another call; nothing was "
        "enqueued. Leave them out, or enqueue with on_duplicate='return'."
    )
    assert queued() == []


def test_of_many_the_ids_of_those_that_are_there_stand_in_order() -> None:
    first = jobs.index.enqueue(2)

    ids = jobs.index.enqueue_many([{"document": number} for number in (1, 2, 3, 1, 2)])

    assert ids[1] == ids[4] == first.id
    assert ids[0] == ids[3]
    assert {job.data["document"]: job.id for job in queued()} == dict(
        zip([1, 2, 3], ids[:3], strict=True)
    )


def test_many_of_a_type_whose_row_is_missing() -> None:
    JobType.objects.filter(name="tests.sample.index").delete()
    assert len(jobs.index.enqueue_many([{"document": 1}, {"document": 2}])) == 2
    assert QueuedJob.objects.count() == 2


def test_many_in_a_transaction_that_goes_on_after_the_refusal() -> None:
    with transaction.atomic():
        jobs.add_alone.enqueue(1)
        refused(lambda: jobs.add_alone.enqueue_many([{"a": 1}, {"a": 2}]))
        jobs.add_alone.enqueue(3)
    assert [job.data["a"] for job in queued()] == [1, 3]


@pytest.mark.parametrize("option", [{"id": uuid4()}, {"unique_key": "x"}])
def test_many_cannot_have_what_one_job_has(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments) as caught:
        jobs.add.using(**option).enqueue_many([{"a": 1}])
    assert (
        str(caught.value)
        == f"{next(iter(option))} is for one job, not for enqueue_many."
    )


def test_an_operators_job_is_refused_too() -> None:
    first = jobs.add_alone.enqueue(1)
    assert (
        refused(lambda: operations.enqueue("tests.sample.add_alone", {"a": 1})).job
        == first
    )


def test_the_job_type_tells_what_its_jobs_are_unique_by() -> None:
    told = dict(JobType.objects.values_list("name", "unique_by"))
    assert told["tests.sample.add_alone"] == "data"
    assert told["tests.sample.index"] == "document"
    assert told["tests.sample.add"] == ""
