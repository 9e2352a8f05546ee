"""Enqueueing as producers do it: in their transaction, from async code, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import django_jobqueue
from django_jobqueue import (
    AlreadyArchived,
    InvalidArguments,
    UnknownJobType,
    operations,
    signals,
)
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued


@pytest.fixture
def enqueued() -> Iterator[list[Any]]:
    """The jobs that receivers of ``job_enqueued`` were told of."""
    heard: list[Any] = []

    def hear(sender: object, job: Any, **_: Any) -> None:
        heard.append(job)

    signals.job_enqueued.connect(hear)
    yield heard
    signals.job_enqueued.disconnect(hear)


def visible(own: OwnConnection) -> int:
    """How many queued jobs another connection sees."""
    return int(own.fetch("SELECT count(*) FROM jobqueue_queuedjob")[0][0])


def test_a_job_is_what_was_asked_for(transactional_db: None) -> None:
    before = timezone.now()
    made = jobs.add.enqueue(1, b=2)

    (job,) = queued()
    assert (job.id, job.job_type_id, job.data) == (made.id, made.job_type, made.data)
    assert (made.job_type, made.data) == ("tests.sample.add", {"a": 1, "b": 2})
    assert (made.status, made.queue, made.priority) == ("queued", "default", 0)
    assert before <= made.run_after <= timezone.now()
    assert made.id.version == 7


def test_it_belongs_to_the_callers_transaction(own: OwnConnection) -> None:
    with transaction.atomic():
        jobs.add.enqueue(1)
        assert visible(own) == 0
    assert visible(own) == 1

    with transaction.atomic():
        jobs.add.enqueue(2)
        transaction.set_rollback(True)
    assert [job.data for job in queued()] == [{"a": 1}]


def test_an_enqueue_is_one_statement(transactional_db: None) -> None:
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        jobs.add.enqueue(1)
    assert len(captured) == 1
    with CaptureQueriesContext(connection) as captured:
        jobs.add.enqueue(2)
        jobs.add.enqueue(3)
    assert len(captured) == 2


def test_a_refused_enqueue_leaves_the_transaction_usable(
    transactional_db: None,
) -> None:
    with transaction.atomic():
        with pytest.raises(InvalidArguments):
            jobs.add.enqueue(object())  # type: ignore[arg-type]
        jobs.add.enqueue(1)
    assert len(queued()) == 1


def test_options_of_one_enqueue(transactional_db: None) -> None:
    moment = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    handler = jobs.add.using(
        run_after=moment,
        expires_at=moment + timedelta(hours=1),
        priority=-5,
        queue="slow",
        tags=["a", "b"],
        enqueued_by="anna",
    )
    handler.enqueue(1)

    (job,) = queued()
    assert (job.run_after, job.expires_at) == (moment, moment + timedelta(hours=1))
    assert (job.priority, job.queue) == (-5, "slow")
    assert (job.tags, job.enqueued_by) == (["a", "b"], "anna")


def test_an_id_of_the_callers_is_used_once(worker: HandDriven) -> None:
    id = uuid4()
    first = jobs.add.using(id=id).enqueue(1)
    second = jobs.add.using(id=str(id)).enqueue(2)

    assert first.id == second.id == id
    assert second.data == {"a": 1}
    worker.work()
    with pytest.raises(AlreadyArchived, match=f"{id} is over already .succeeded."):
        jobs.add.using(id=id).enqueue(3)
    assert len(archived()) == 1
    assert queued() == []


def test_from_async_code(transactional_db: None) -> None:
    async def enqueue() -> tuple[UUID, list[UUID], UUID]:
        one = await jobs.add.aenqueue(1)
        many = await jobs.add.aenqueue_many([{"a": 2}, {"a": 3}])
        named = await django_jobqueue.aenqueue("tests.sample.add", {"a": 4})
        await sync_to_async(connections.close_all)()
        return one.id, many, named.id

    one, many, named = asyncio.run(enqueue())
    assert [job.id for job in queued()] == [one, *many, named]
    assert [job.data["a"] for job in queued()] == [1, 2, 3, 4]


def test_by_name(transactional_db: None) -> None:
    made = django_jobqueue.enqueue(
        "tests.sample.add", {"a": 1}, queue="q", run_after=timedelta(hours=1)
    )
    (job,) = queued()
    assert (job.id, job.queue, job.data) == (made.id, "q", {"a": 1})
    assert job.run_after > timezone.now() + timedelta(minutes=59)


def test_by_a_name_that_only_another_process_knows(transactional_db: None) -> None:
    JobType.objects.create(name="elsewhere.report", queue="reports")
    django_jobqueue.enqueue("elsewhere.report", {"anything": [1, {"b": None}]})
    (job,) = queued()
    assert (job.queue, job.data) == ("reports", {"anything": [1, {"b": None}]})


def test_by_a_name_that_nobody_knows(transactional_db: None) -> None:
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.add'"):
        django_jobqueue.enqueue("tests.sample.ad", {"a": 1})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": 1, "c": 2}, "no parameter 'c'"),
        ({}, "missing 'a'"),
        ([1], "must be an object"),
    ],
)
def test_by_name_the_data_must_fit(
    transactional_db: None, data: Any, message: str
) -> None:
    with pytest.raises(InvalidArguments, match=message):
        django_jobqueue.enqueue("tests.sample.add", data)


def test_a_type_whose_row_is_missing_gets_one(transactional_db: None) -> None:
    """Its code was deployed, and nobody has migrated or started a worker yet."""
    JobType.objects.filter(name="tests.sample.add").delete()
    jobs.add.enqueue(1)
    assert JobType.objects.filter(name="tests.sample.add").exists()
    JobType.objects.filter(name="tests.sample.aadd").delete()
    jobs.aadd.enqueue_many([{"a": 1}])
    assert QueuedJob.objects.count() == 2


def test_many_are_all_or_none(own: OwnConnection) -> None:
    ids = jobs.add.enqueue_many({"a": number} for number in range(2_500))
    assert visible(own) == 2_500
    assert [job.id for job in queued()] == ids
    assert sorted(ids) == ids

    with pytest.raises(InvalidArguments, match="missing 'a'"):
        jobs.add.enqueue_many([{"a": 1}, {}])
    with transaction.atomic():
        jobs.add.enqueue_many([{"a": 1}])
        transaction.set_rollback(True)
    assert visible(own) == 2_500


def test_receivers_are_told_and_harm_nothing(
    transactional_db: None, enqueued: list[Any]
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("broken receiver")

    signals.job_enqueued.connect(broken)
    try:
        made = jobs.add.enqueue(1)
    finally:
        signals.job_enqueued.disconnect(broken)
    assert enqueued == [made]
    assert operations.get_job(made.id).data == {"a": 1}
