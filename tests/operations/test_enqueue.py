"""Enqueueing as producers do it: in their transaction, from async code, by name."""

from __future__ import annotations

import asyncio
from datetime import timedelta
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
from django_jobqueue.models import JobType
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued


def test_a_job_is_what_was_asked_for(transactional_db: None) -> None:
    before = timezone.now()
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        made = jobs.add.enqueue(1, b=2)
    assert len(captured) == 1
    (job,) = queued()
    assert (job.id, job.job_type_id, job.data) == (made.id, made.job_type, made.data)
    assert (made.job_type, made.data) == ("tests.sample.add", {"a": 1, "b": 2})
    assert (made.status, made.queue, made.priority) == ("queued", "default", 0)
    assert before <= made.run_after <= timezone.now()
    assert made.id.version == 7
    with CaptureQueriesContext(connection) as captured:
        jobs.add.enqueue(2)
        jobs.add.enqueue(3)
    assert len(captured) == 2


def test_an_id_of_the_callers_is_used_once(worker: HandDriven) -> None:
    id = uuid4()
    first = jobs.add.using(id=id).enqueue(1)
    second = jobs.add.using(id=str(id)).enqueue(2)
    assert (first.id, second.id, second.data) == (id, id, {"a": 1})
    worker.work()
    with pytest.raises(AlreadyArchived, match=f"{id} has already ended .succeeded."):
        jobs.add.using(id=id).enqueue(3)
    assert [job.id for job in archived()] == [id]
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
    JobType.objects.create(name="elsewhere.report", queue="reports")
    anything = {"anything": [1, {"b": None}]}
    django_jobqueue.enqueue("elsewhere.report", anything)
    job, other = queued()
    assert (job.id, job.queue, job.data) == (made.id, "q", {"a": 1})
    assert job.run_after > timezone.now() + timedelta(minutes=59)
    assert (other.queue, other.data) == ("reports", anything)
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.add'"):
        django_jobqueue.enqueue("tests.sample.ad", {"a": 1})
    refused: list[tuple[Any, str]] = [
        ({"a": 1, "c": 2}, "no parameter 'c'"),
        ({}, "missing 'a'"),
        ([1], "must be an object"),
    ]
    for data, message in refused:
        with pytest.raises(InvalidArguments, match=message):
            django_jobqueue.enqueue("tests.sample.add", data)


def test_receivers_are_told_and_harm_nothing(transactional_db: None) -> None:
    heard: list[Any] = []

    def hear(sender: object, job: Any, **_: Any) -> None:
        heard.append(job)
        raise RuntimeError("broken receiver")

    signals.job_enqueued.connect(hear)
    try:
        made = jobs.add.enqueue(1)
    finally:
        signals.job_enqueued.disconnect(hear)
    assert heard == [made]
    assert operations.get_job(made.id).data == {"a": 1}
