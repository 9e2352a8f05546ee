"""``drain()`` runs what there is to run, in this thread and in this transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import TestCase, override_settings
from django.utils import timezone

from django_jobqueue import enqueue, get_job, operations, signals
from django_jobqueue.models import Failure, JobType, Report, Rollup, Worker
from django_jobqueue.testing import (
    EndlessDrain,
    JobQueueTestMixin,
    adrain,
    drain,
    draining,
)
from tests.support.rows import archived, queued
from tests.testing import jobs


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    jobs.heard.clear()
    yield
    jobs.heard.clear()


pytestmark = pytest.mark.django_db


def names() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def test_it_runs_what_there_is_and_tells_what_ran() -> None:
    JobType.objects.create(name="elsewhere.job")
    enqueue("elsewhere.job")  # which has no handler here
    job = jobs.greet.enqueue("anna")
    (ran,) = drain()
    assert (ran.verb, ran.attempt, ran.error) == ("succeed", 1, None)
    assert (ran.job.id, ran.job.status) == (job.id, "succeeded")
    assert ran.job.result == "Hello, anna!"
    assert ran.job == get_job(job.id)
    assert names() == ["anna"]
    assert drain() == []
    workers = Worker.objects.filter(name=archived()[0].worker)
    assert {(one.state, one.supervisor) for one in workers} == {("stopped", "drain()")}


def test_async_tests_drain_as_well() -> None:
    class Async(JobQueueTestMixin, TestCase):
        async def test_it(self) -> None:
            await jobs.agreet.aenqueue("anna")
            await jobs.greet.aenqueue("ben")
            assert [ran.verb for ran in await adrain(limit=1)] == ["succeed"]
            assert [ran.verb for ran in await self.adrain()] == ["succeed"]
            assert await Group.objects.acount() == 2

    Async("test_it").debug()


def test_urgent_jobs_come_first_and_others_in_their_order() -> None:
    jobs.hear.enqueue("a")
    jobs.one_at_a_time.enqueue("b")
    jobs.hear.using(priority=5).enqueue("c")
    jobs.hear.using(queue="mail").enqueue("d")
    drain()
    assert [word for word in jobs.heard if len(word) == 1] == ["c", "a", "b", "d"]


def test_jobs_that_are_due_at_one_moment_run_in_their_order_over_all_queues() -> None:
    queues = [f"q{number:02}" for number in range(12)]
    for due in (timezone.now(), None):  # one moment for all, and one after the other
        for queue in queues:
            jobs.hear.using(queue=queue, run_after=due).enqueue(queue)
    drain()
    assert [word for word in jobs.heard if word in queues] == [*queues, *queues]


def test_callbacks_on_commit_are_called_before_and_after_each_job() -> None:
    transaction.on_commit(lambda: jobs.hear.enqueue("early"))
    jobs.spread.enqueue(["a", "b"])
    assert len(drain()) == 4
    a = jobs.heard.index("a")
    assert jobs.heard[a : a + 2] == ["a", "a committed"]
    assert sorted(jobs.heard) == sorted(
        [w for word in ("a", "b", "early") for w in (word, f"{word} committed")]
    )


def test_callbacks_are_called_once(
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        transaction.on_commit(lambda: jobs.heard.append("once"))
        drain(), drain()
    assert jobs.heard == ["once"]


def test_callbacks_may_add_others_and_robust_ones_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def add() -> None:
        transaction.on_commit(lambda: jobs.heard.append("inner"))

    transaction.on_commit(lambda: 1 // 0, robust=True)
    transaction.on_commit(add)
    drain()
    assert jobs.heard == ["inner"]
    assert "ZeroDivisionError" in caplog.text


def test_only_the_queues_that_are_asked_for_and_no_more_than_the_limit() -> None:
    for queue in ("default", "mail", "sms", "sms", "sms"):
        jobs.look.using(queue=queue).enqueue()
    assert [ran.job.queue for ran in drain(queue="mail")] == ["mail"]
    assert len(drain(queue=["sms", "mail"], limit=2)) == 2
    assert drain(limit=0) == []
    assert sorted(job.queue for job in queued()) == ["default", "sms"]


def test_until_is_a_moment_or_a_time() -> None:
    values: tuple[Any, ...] = (10, "1h")
    for until in values:
        with pytest.raises(TypeError) as caught:
            drain(until=until)
        assert str(caught.value) == (
            f"until must be a datetime or a timedelta, not {until!r}."
        )


def test_an_error_is_raised_when_it_is_written_what_became_of_the_job() -> None:
    job = jobs.fail.enqueue("no such order")
    with pytest.raises(ValueError, match="no such order") as caught:
        drain()
    assert str(job.id) in caught.value.__notes__[0]
    (waiting,) = queued()
    assert (waiting.attempts, waiting.status) == (1, "queued")
    assert waiting.run_after > waiting.created_at + timedelta(seconds=50)


def test_errors_can_be_left_to_the_queue() -> None:
    jobs.fail_fast.enqueue()
    first, second, third = drain(raise_errors=False)
    assert [one.verb for one in (first, second, third)] == ["retry", "retry", "fail"]
    assert [one.attempt for one in (first, second, third)] == [1, 2, 3]
    assert isinstance(first.error, ValueError)
    assert third.job.status == "failed"
    assert archived()[0].error_class == "ValueError"


def test_what_a_handler_says_on_purpose_is_no_error_but_fail_and_a_last_retry() -> None:
    for word in ("retry", "snooze", "cancel"):
        jobs.say.enqueue(word)
    assert [ran.verb for ran in drain()] == ["retry", "snooze", "cancel"]
    jobs.say.enqueue("fail")
    with pytest.raises(Exception, match="hopeless"):
        drain()
    with pytest.raises(Exception, match="again"):
        drain(until=timedelta(minutes=2))
    assert [job.status for job in archived()] == ["cancelled", "failed", "failed"]


def test_what_fails_leaves_the_transaction_of_the_test_as_it_was() -> None:
    """What an atomic handler wrote is undone, and so is an error of the database."""
    jobs.greet_or_not.enqueue("anna", fails=True)
    jobs.break_transaction.enqueue()
    jobs.greet.enqueue("ben")
    ran = drain(raise_errors=False)
    assert sorted(one.verb for one in ran) == ["retry", "retry", "succeed"]
    assert names() == ["ben"]


def test_pauses_and_limits_hold() -> None:
    name = jobs.one_at_a_time.name
    jobs.one_at_a_time.enqueue("a")
    operations.pause([name], by="test")
    assert drain() == []
    operations.resume([name], by="test")
    JobType.objects.filter(name=name).update(concurrency_override=0)
    assert drain() == []
    JobType.objects.filter(name=name).update(concurrency_override=2)
    assert len(drain()) == 1


def test_what_follows_on_a_job_runs_as_well() -> None:
    jobs.after.enqueue("", "declared")
    jobs.before.enqueue()
    drain()
    assert jobs.heard == ["declared", "succeeded"]


def test_what_handlers_tell_and_keep_is_written_and_counted() -> None:
    job = jobs.report.enqueue()
    first, second = drain(raise_errors=False)
    assert (first.job.metadata, second.job.metadata) == ({"seen": 1}, {"seen": 2})
    reports = Report.objects.filter(job_id=job.id).order_by("number")
    assert [(r.done, r.total, r.note) for r in reports] == [(3, 10, "resizing")] * 2
    assert [r.lines[0][2] for r in reports] == ["attempt 1", "attempt 2"]
    assert "attempt 1" in Failure.objects.get(job_id=job.id).log_tail
    counts = Rollup.objects.values_list("job_type", "succeeded", "retried")
    assert list(counts) == [(jobs.report.name, 1, 1)]


@pytest.mark.dear
def test_a_job_that_enqueues_itself_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "ENDLESS", 30)
    jobs.again.enqueue()
    with pytest.raises(EndlessDrain, match=r"tests\.testing\.again \(30\)"):
        drain()
    assert len(drain(limit=5)) == 5


def test_a_handler_does_not_drain_and_an_interrupt_is_always_raised() -> None:
    jobs.drain_inside.enqueue()
    with pytest.raises(RuntimeError, match="by a handler that"):
        drain()
    jobs.interrupt.enqueue()
    with pytest.raises(KeyboardInterrupt):
        drain(raise_errors=False)


@pytest.mark.django_db(transaction=True)
def test_it_drains_outside_of_transactions() -> None:
    for handler in (jobs.greet, jobs.agreet, jobs.greet_or_not):
        handler.enqueue(handler.name)
    assert len(drain()) == 3
    assert not connection.in_atomic_block
    assert len(names()) == 3


@override_settings(JOBQUEUE={"MODE": "on_commit"})
def test_where_nothing_is_queued_it_calls_what_waits_for_the_commit() -> None:
    jobs.hear.enqueue("a")
    assert jobs.heard == []
    assert drain() == []
    assert jobs.heard == ["a", "a committed"]


def test_receivers_of_signals_are_called_in_the_same_thread() -> None:
    heard: list[tuple[object, object, bool]] = []

    def hear(sender: object, id: UUID, **kwargs: object) -> None:
        heard.append((sender, id, connection.in_atomic_block))

    signals.job_succeeded.connect(hear, sender=jobs.greet)
    try:
        made = jobs.greet.enqueue("anna")
        drain()
    finally:
        signals.job_succeeded.disconnect(hear, sender=jobs.greet)
    assert heard == [(jobs.greet, made.id, True)]
