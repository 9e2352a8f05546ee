"""``drain()`` runs what there is to run, in this thread and in this transaction."""

from __future__ import annotations

from collections.abc import Iterator
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
    job = jobs.greet.enqueue("anna")
    (ran,) = drain()
    assert (ran.verb, ran.attempt, ran.error) == ("succeed", 1, None)
    assert (ran.job.id, ran.job.status) == (job.id, "succeeded")
    assert ran.job.result == "Hello, anna!"
    assert ran.job == get_job(job.id)
    assert names() == ["anna"]
    assert drain() == []


def test_async_handlers_write_through_the_same_connection() -> None:
    jobs.agreet.enqueue("anna")
    assert [ran.verb for ran in drain()] == ["succeed"]
    assert names() == ["anna"]


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
    django_capture_on_commit_callbacks: object,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        transaction.on_commit(lambda: jobs.heard.append("once"))
        drain()
        drain()
    assert jobs.heard == ["once"]


def test_a_callback_may_add_another_and_a_robust_one_may_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise ValueError("robust")

    transaction.on_commit(fail, robust=True)
    transaction.on_commit(
        lambda: transaction.on_commit(lambda: jobs.heard.append("inner"))
    )
    drain()
    assert jobs.heard == ["inner"]
    assert "robust" in caplog.text


def test_only_the_queues_that_are_asked_for() -> None:
    jobs.hear.enqueue("a")
    jobs.hear.using(queue="mail").enqueue("b")
    jobs.hear.using(queue="sms").enqueue("c")
    assert [ran.job.queue for ran in drain(queue="mail")] == ["mail"]
    assert len(drain(queue=["sms", "mail"])) == 1
    assert len(queued()) == 1


def test_until_is_a_moment_or_a_time() -> None:
    values: tuple[Any, ...] = (10, "1h")
    for until in values:
        with pytest.raises(TypeError) as caught:
            drain(until=until)
        assert str(caught.value) == (
            f"until must be a datetime or a timedelta, not {until!r}."
        )


def test_a_limit() -> None:
    jobs.look.enqueue_many({} for _ in range(3))
    assert len(drain(limit=2)) == 2
    assert len(queued()) == 1
    assert drain(limit=0) == []


def test_jobs_for_later_wait() -> None:
    jobs.greet.using(run_after=timedelta(hours=1)).enqueue("anna")
    assert drain() == []


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
    ran = drain(raise_errors=False)
    assert [(one.verb, one.attempt) for one in ran] == [
        ("retry", 1),
        ("retry", 2),
        ("fail", 3),
    ]
    assert isinstance(ran[0].error, ValueError)
    assert ran[2].job.status == "failed"
    assert archived()[0].error_class == "ValueError"


def test_what_a_handler_says_on_purpose_is_no_error() -> None:
    for word in ("retry", "snooze", "cancel"):
        jobs.say.enqueue(word)
    assert [ran.verb for ran in drain()] == ["retry", "snooze", "cancel"]


def test_fail_is_an_error_and_so_is_a_retry_with_no_attempt_left() -> None:
    jobs.say.enqueue("fail")
    with pytest.raises(Exception, match="hopeless"):
        drain()
    job = jobs.say.enqueue("retry")
    assert [ran.verb for ran in drain()] == ["retry"]
    with pytest.raises(Exception, match="again"):
        drain(until=timedelta(minutes=2))
    assert get_job(job.id).status == "failed"


def test_a_failing_handler_keeps_what_it_wrote_unless_it_is_atomic() -> None:
    jobs.greet_or_not.enqueue("anna", fails=True)
    jobs.greet_or_not.enqueue("ben")
    drain(raise_errors=False)
    assert names() == ["ben"]


def test_an_error_of_the_database_does_not_break_the_transaction_of_the_test() -> None:
    jobs.break_transaction.enqueue()
    jobs.greet.enqueue("anna")
    ran = drain(raise_errors=False)
    assert [one.verb for one in ran] == ["retry", "succeed"]
    assert names() == ["anna"]


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


def test_what_handlers_tell_and_keep_is_written() -> None:
    job = jobs.report.enqueue()
    first, second = drain(raise_errors=False)
    assert (first.job.metadata, second.job.metadata) == ({"seen": 1}, {"seen": 2})
    reports = Report.objects.filter(job_id=job.id).order_by("number")
    assert [(r.done, r.total, r.note) for r in reports] == [(3, 10, "resizing")] * 2
    assert [r.lines[0][2] for r in reports] == ["attempt 1", "attempt 2"]
    assert "attempt 1" in Failure.objects.get(job_id=job.id).log_tail


def test_what_ran_is_counted() -> None:
    jobs.greet.enqueue("anna")
    jobs.report.enqueue()
    drain(raise_errors=False)
    counts = Rollup.objects.values_list("job_type", "succeeded", "retried")
    assert sorted(counts) == [(jobs.greet.name, 1, 0), (jobs.report.name, 1, 1)]


def test_a_job_that_enqueues_itself_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draining, "ENDLESS", 120)
    jobs.again.enqueue()
    with pytest.raises(EndlessDrain, match=r"tests\.testing\.again \(100\)"):
        drain()
    assert len(drain(limit=5)) == 5


def test_a_job_without_handler_waits() -> None:
    JobType.objects.create(name="elsewhere.job")
    enqueue("elsewhere.job")
    assert drain() == []


def test_its_worker_is_there_while_it_drains_and_gone_after() -> None:
    jobs.greet.enqueue("anna")
    drain()
    (worker,) = Worker.objects.all()
    assert (worker.state, worker.supervisor) == ("stopped", "drain()")
    assert archived()[0].worker == worker.name


def test_a_handler_does_not_drain() -> None:
    jobs.drain_inside.enqueue()
    with pytest.raises(RuntimeError, match="by a handler that"):
        drain()


def test_what_is_not_meant_for_the_queue_is_always_raised() -> None:
    jobs.interrupt.enqueue()
    with pytest.raises(KeyboardInterrupt):
        drain(raise_errors=False)


@pytest.mark.django_db(transaction=True)
def test_it_drains_outside_of_transactions() -> None:
    jobs.greet.enqueue("anna")
    jobs.agreet.enqueue("ben")
    jobs.greet_or_not.enqueue("carl")
    assert len(drain()) == 3
    assert not connection.in_atomic_block
    assert names() == ["anna", "ben", "carl"]


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
