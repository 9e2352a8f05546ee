"""Jobs that run when they are enqueued: at once, or on commit."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import TestCase

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import override_settings

from django_jobqueue import (
    AlreadyArchived,
    InvalidArguments,
    JobNotFound,
    UnknownJobType,
    enqueue,
    get_job,
)
from django_jobqueue.domain.ids import new_id
from django_jobqueue.enqueueing import immediate_jobs
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.testing import JobQueueTestMixin
from tests.support.rows import archived, queued
from tests.testing import jobs


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    jobs.heard.clear()
    memory.clear()
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        yield
    memory.clear()


def test_a_job_runs_before_enqueue_returns(db: None) -> None:
    job = jobs.greet.enqueue("anna")
    assert (job.status, job.result, job.attempts) == ("succeeded", "Hello, anna!", 1)
    assert job.started_at is not None
    assert job.finished_at is not None
    assert Group.objects.get().name == "anna"
    assert get_job(job.id) == job
    assert queued() == archived() == []


def test_async_handlers_and_async_code_reach_the_same_database(db: None) -> None:
    async def produce() -> list[str]:
        first = await jobs.greet.aenqueue("anna")
        second = await jobs.agreet.aenqueue("ben")
        return [first.status, second.status]

    assert async_to_sync(produce)() == ["succeeded", "succeeded"]
    assert jobs.agreet.enqueue("carl").status == "succeeded"
    assert Group.objects.count() == 3


def test_jobs_are_enqueued_by_name_in_order_and_with_their_followers() -> None:
    job = enqueue("tests.testing.look", queue="mail", priority=7)
    assert (job.queue, job.priority, job.result) == ("mail", 7, [1, 5, None])
    ids = jobs.hear_anything.enqueue_many([{"word": "a"}, {"word": "b"}])
    assert [get_job(id).status for id in ids] == ["succeeded"] * 2
    jobs.before.enqueue()
    assert jobs.heard == ["a", "b", "succeeded"]
    id = new_id()
    assert jobs.look.using(id=id).enqueue().id == id
    with pytest.raises(AlreadyArchived):
        jobs.look.using(id=id).enqueue()


def test_what_the_handler_raises_reaches_the_caller_but_words_do_not() -> None:
    with pytest.raises(ValueError, match="no such order"):
        jobs.fail.enqueue("no such order")
    (kept,) = memory
    assert (kept.job.status, kept.job.error_class) == ("failed", "ValueError")
    assert kept.job.error_message == "no such order"
    ends = [("retry", "queued"), ("snooze", "queued"), ("cancel", "cancelled")]
    for word, status in ends:
        assert jobs.say.enqueue(word).status == status
    with pytest.raises(Exception, match="hopeless"):
        jobs.say.enqueue("fail")


def test_an_atomic_handler_that_fails_leaves_nothing(db: None) -> None:
    with pytest.raises(ValueError, match="anna"):
        jobs.greet_or_not.enqueue("anna", fails=True)
    assert not Group.objects.exists()
    assert jobs.greet_or_not.enqueue("ben").status == "succeeded"
    assert Group.objects.get().name == "ben"


def test_data_are_checked_as_ever() -> None:
    with pytest.raises(InvalidArguments, match="has no parameter 'nam'"):
        jobs.greet.enqueue(nam="anna")  # type: ignore[call-arg]
    with pytest.raises(InvalidArguments, match="is a set"):
        jobs.greet.enqueue(name={"anna"})  # type: ignore[arg-type]
    with pytest.raises(UnknownJobType, match=r"Did you mean 'tests.testing.greet'"):
        enqueue("tests.testing.gret")


def test_only_the_last_jobs_are_kept_and_none_for_the_next_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Case(JobQueueTestMixin, TestCase):
        def runTest(self) -> None:
            assert list(memory) == []

    monkeypatch.setattr(immediate_jobs, "LARGEST", 9)
    first = jobs.look.enqueue()
    jobs.look.enqueue_many({} for _ in range(9))
    assert len(list(memory)) == 9
    with pytest.raises(JobNotFound):
        get_job(first.id)
    Case().debug()


@pytest.mark.django_db(transaction=True)
def test_on_commit_a_job_waits_for_the_end_of_the_transaction() -> None:
    with override_settings(JOBQUEUE={"MODE": "on_commit"}):
        with transaction.atomic():
            job = jobs.hear.enqueue("a")
            assert (job.status, jobs.heard) == ("queued", [])
        assert jobs.heard == ["a", "a committed"]
        assert get_job(job.id).status == "succeeded"
        assert jobs.hear.enqueue("b").status == "succeeded"
        jobs.heard.clear()
        with transaction.atomic():
            jobs.hear.enqueue("c")
            transaction.set_rollback(True)
        assert jobs.heard == []
