"""Handed-over jobs: no slot waits for them, and each ends once, whoever is late."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.contrib.remote.endpoint_watch import EndpointWatch
from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
    Worker,
)
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import rescue
from django_jobqueue.store.rows import Job
from django_jobqueue.testing import drain
from tests.contrib.http.conftest import Program, problem, program  # noqa: F401
from tests.contrib.remote.conftest import TYPE, EndpointServer, Reply
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import counted
from tests.support.waiting import eventually

Declare = Callable[..., Handler[..., Any]]
ACCEPTED = Reply(202)


@pytest.fixture
def endpoint(program: Callable[..., Program]) -> Program:  # noqa: F811
    """The endpoint, as it calls back."""
    return program("work")


@pytest.fixture
def watch(transactional_db: None) -> Iterator[EndpointWatch]:
    """The watch of a host."""
    made = EndpointWatch(OwnConnection("endpoints"))
    yield made
    made.close()


def call_back(
    endpoint: Program, job: Job, status: str = "succeeded", **said: Any
) -> Any:
    body = {"fence": 1, "status": status, **said}
    return endpoint.send("POST", f"/jobs/{job.job_type}/job_{job.id}", body)


def archived(id: UUID) -> ArchivedJob:
    return ArchivedJob.objects.get(pk=id)


def handed_over(job: Job) -> bool:
    row = QueuedJob.objects.get(pk=job.id)
    holder = Worker.objects.get(pk=row.worker_id)
    return (row.status, holder.state) == ("running", "endpoint")


def make_late(job: Job) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    QueuedJob.objects.filter(pk=job.id).update(started_at=long_ago)


def test_an_accepted_job_holds_no_slot_and_ends_with_its_callback(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue(order_id=7)
    worker.work()
    assert handed_over(job)
    assert not any(one.running for one in worker.worker.executors)
    said = call_back(endpoint, job, result={"parcel": 7})
    assert (said.status_code, said.json()["status"]) == (200, "succeeded")
    done = archived(job.id)
    assert (done.result, done.worker) == ({"parcel": 7}, "shipping")
    assert (done.attempts, done.run_ms > 0) == (1, True)
    assert counted("succeeded", job_type=TYPE) == 1
    assert Failure.objects.count() == 0


@pytest.mark.parametrize("how", ["times out", "breaks"])
def test_what_may_have_arrived_is_handed_over(
    how: str,
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    endpoint: Program,
) -> None:
    answered = threading.Event()
    is_slow = how == "times out"
    shipping.answer(Reply(wait_for=answered) if is_slow else Reply(breaks=True))
    job = declare("invoices.pay", delivery="at_most_once").enqueue()
    worker.work()
    answered.set()
    assert handed_over(job)
    assert call_back(endpoint, job).status_code == 200
    assert archived(job.id).status == "succeeded"


@pytest.mark.parametrize("why", [StopReason.STOP, StopReason.CANCEL])
def test_what_is_being_sent_when_we_stop_is_handed_over(
    why: StopReason,
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    endpoint: Program,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "django_jobqueue.remote")
    answered = threading.Event()
    shipping.answer(Reply(wait_for=answered))
    slow = {"url": shipping.url, "secrets": [], "read_timeout": 60}
    with override_settings(JOBQUEUE={"ENDPOINTS": {"shipping": slow}}):
        job = declare().enqueue()
        worker.claim()
        eventually(lambda: shipping.received, what="the request")
        (attempt,) = [a for one in worker.worker.executors for a in one.running]
        assert attempt.interrupt(why)
        worker.run()
        answered.set()
        worker.finish()
    assert "it may have arrived (we stop)" in caplog.text
    assert handed_over(job)
    assert call_back(endpoint, job).status_code == 200


@pytest.mark.parametrize("answer", [202, 200, 500])
def test_a_callback_may_come_before_our_outcome(
    answer: int,
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    endpoint: Program,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "django_jobqueue.worker")
    shipping.answer(Reply(answer))
    job = declare().enqueue()
    worker.claim()
    worker.run()
    assert call_back(endpoint, job, result=1).status_code == 200
    worker.finish()
    assert (archived(job.id).status, archived(job.id).result) == ("succeeded", 1)
    assert not QueuedJob.objects.exists()
    assert "was rescued" not in caplog.text
    worker.work()
    assert len(shipping.received) == 1


def test_a_retry_by_callback_before_the_hand_over_stays_one(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare(max_attempts=3).enqueue()
    worker.claim()
    worker.run()
    said = call_back(endpoint, job, "failed", retry_after=0, error={"message": "no"})
    assert said.json()["status"] == "queued"
    worker.finish()
    row = QueuedJob.objects.get(pk=job.id)
    assert (row.status, row.worker_id, row.attempts) == ("queued", None, 1)
    worker.work()
    assert [one.json["fence"] for one in shipping.received] == [1, 2]
    assert {one.headers["webhook-id"] for one in shipping.received} == {f"job_{job.id}"}
    problem(call_back(endpoint, job), 409, "stale_fence")
    assert call_back(endpoint, job, fence=2).status_code == 200
    assert archived(job.id).attempts == 2


def test_only_the_right_fence_counts_and_only_once(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    problem(call_back(endpoint, job, fence=0), 409, "stale_fence")  # it waits
    worker.work()
    problem(call_back(endpoint, job, fence=2), 409, "stale_fence")
    assert handed_over(job)
    assert call_back(endpoint, job).status_code == 200
    problem(call_back(endpoint, job, "failed"), 409, "stale_fence")
    assert archived(job.id).status == "succeeded"


def test_an_endpoint_that_knows_no_fence_sends_back_the_attempts_that_were_left(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    handler = declare(max_attempts=3, backoff="immediate")

    def say(job: Job, status: str, **said: Any) -> Any:
        path = f"/jobs/{job.job_type}/job_{job.id}"
        return endpoint.send("POST", path, {"status": status, **said})

    job = handler.enqueue()
    worker.work()
    problem(say(job, "failed"), 400, "missing_parameter")
    problem(say(job, "failed", attempt=1), 409, "stale_fence")
    assert say(job, "failed", attempt=3).json()["status"] == "queued"
    shipping.answer(ACCEPTED)
    worker.work()
    problem(say(job, "succeeded", attempt=3), 409, "stale_fence")
    QueuedJob.objects.update(fence=7)  # as after claims that were given back
    assert say(job, "succeeded", attempt=2).status_code == 200
    assert archived(job.id).status == "succeeded"


def test_unlimited_attempts_are_told_apart_by_their_fences_alone(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare(max_attempts=None).enqueue()
    worker.work()
    path, said = f"/jobs/{job.job_type}/job_{job.id}", {"status": "succeeded"}
    problem(endpoint.send("POST", path, {**said, "attempt": 1}), 409, "stale_fence")
    assert endpoint.send("POST", path, {**said, "fence": 1}).status_code == 200


def test_jobs_of_an_endpoint_cannot_be_given_all_time(declare: Declare) -> None:
    declare()
    with pytest.raises(InvalidArguments, match="cannot be unlimited"):
        operations.override(TYPE, timeout=timedelta(0))


def test_only_jobs_of_endpoints_end_without_a_worker(
    worker: HandDriven, endpoint: Program
) -> None:
    job = jobs.add.enqueue(a=1)
    worker.claim()
    body = {"fence": 1, "status": "succeeded"}
    path = f"/jobs/{jobs.add.name}/job_{job.id}"
    problem(endpoint.send("POST", path, body), 400, "not_remote")
    worker.run()
    worker.finish()


def test_callbacks_need_the_right_to_the_type(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    program: Callable[..., Program],  # noqa: F811
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    problem(call_back(program("work", job_types=["x.*"]), job), 403, "forbidden")
    problem(call_back(program("enqueue"), job), 403, "forbidden")
    assert handed_over(job)


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_who_does_not_call_back_in_time_has_timed_out(
    delivery: str,
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    endpoint: Program,
    watch: EndpointWatch,
) -> None:
    shipping.answer(Reply(breaks=True))
    job = declare(f"invoices.{delivery}", delivery=delivery).enqueue()
    worker.work()
    watch.tick()
    assert handed_over(job)
    make_late(job)
    watch.tick()
    assert Failure.objects.get().end == "timed_out"
    if delivery == "at_least_once":
        row = QueuedJob.objects.get(pk=job.id)
        assert (row.status, row.attempts, row.worker_id) == ("queued", 1, None)
        assert counted("retried", job_type=job.job_type) == 1
    else:
        done = archived(job.id)
        assert (done.status, done.worker) == ("failed", "shipping")
        assert done.error_message.startswith("outcome unknown: it ran longer than its")
        assert FailureGroup.objects.get().error_class.endswith("JobTimeout")
    problem(call_back(endpoint, job), 409, "stale_fence")


def test_a_clock_that_is_set_ends_no_attempt(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, watch: EndpointWatch
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    endpoints = Worker.objects.filter(state="endpoint")
    for days in (100, 0, -100, 0, -1):  # what the clock wrote is so much older for it
        ago = timedelta(days=days)
        endpoints.update(renewed_at=F("renewed_at") - ago)
        QueuedJob.objects.update(started_at=F("started_at") - ago)
        watch.tick()
        assert handed_over(job)
    make_late(job)
    watch.tick()
    assert not QueuedJob.objects.filter(status="running").exists()


def test_the_deadline_is_that_of_an_operator(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, watch: EndpointWatch
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    operations.override(TYPE, timeout=timedelta(hours=2), by="anna")
    make_late(job)
    watch.tick()
    assert handed_over(job)
    operations.override(TYPE, timeout=timedelta(minutes=2), by="anna")
    watch.tick()
    assert not QueuedJob.objects.filter(status="running").exists()


def test_an_endpoint_is_told_once_of_a_cancel(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    endpoint: Program,
    watch: EndpointWatch,
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    operations.cancel([job.id], reason="no such order", by="anna")
    other = EndpointWatch(OwnConnection("endpoints"))
    for each in (watch, other, watch):
        each.tick()
    other.close()
    posted, told = shipping.received
    assert (told.method, told.path) == ("DELETE", posted.path)
    assert told.json["fence"] == 1
    assert "v1," in told.headers["webhook-signature"]
    assert handed_over(job)
    said = call_back(endpoint, job, "failed", error={"message": "stopped"})
    assert said.json()["status"] == "cancelled"
    assert "no such order" in archived(job.id).error_message

    again = operations.replay(job.id)  # which is told of its own cancel
    worker.work()
    operations.cancel([again.id], by="anna")
    watch.tick()
    assert shipping.received[-1].method == "DELETE"
    assert len(shipping.received) == 4


def test_a_cancelled_job_that_nobody_ends_is_cancelled_at_its_deadline(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, watch: EndpointWatch
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    shipping.close()
    operations.cancel([job.id])
    watch.tick()
    make_late(job)
    watch.tick()
    assert archived(job.id).status == "cancelled"


def test_no_rescue_takes_what_is_handed_over(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    db = DjangoDatabase()
    (ours,) = Worker.objects.exclude(state="endpoint")
    worker_rows.stopped(db, [ours.pk], end="killed", lost=True)
    assert rescue.rescue(db, [ours.pk], crashed=True, reason="killed") == []
    assert worker_rows.strays(db) == []
    assert worker_rows.give_up(db) == []
    assert handed_over(job)
    assert call_back(endpoint, job).status_code == 200
    assert len(shipping.received) == 1


def test_what_is_handed_over_counts_against_the_limit(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    ship = declare("invoices.few", concurrency=2)
    ids = [ship.enqueue(order=n) for n in range(3)]
    worker.work()
    assert len(shipping.received) == 2
    for job in ids[:2]:
        assert call_back(endpoint, job).status_code == 200

    def has_sent_the_third() -> bool:  # a limit is looked at again in a second
        worker.work()
        return len(shipping.received) == 3

    eventually(has_sent_the_third, what="room to be found")


def test_other_outcomes_are_written_beside_hand_overs(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    good = jobs.add.enqueue(a=1)
    worker.claim()
    worker.run()
    worker.finish()
    worker.work()
    assert handed_over(job)
    assert archived(good.id).status == "succeeded"


def test_the_row_of_an_endpoint_is_no_living_worker(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    shipping.answer(ACCEPTED)
    declare().enqueue()
    declare("invoices.b").enqueue()
    worker.work()
    (row,) = Worker.objects.filter(state="endpoint")
    db = DjangoDatabase()
    assert worker_rows.alive(db, [row.pk]) == []
    assert worker_rows.ask(db, [row.pk], "drain") == []
    worker_rows.forget(db)
    assert Worker.objects.filter(pk=row.pk).exists()
    assert JobType.objects.get(name=TYPE).handler.endswith(f"remote.conftest:{TYPE}")


def test_of_a_result_that_is_too_large_the_size_is_kept(
    declare: Declare, shipping: EndpointServer, worker: HandDriven, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    worker.work()
    said = call_back(endpoint, job, result="x" * 70_000)
    assert said.status_code == 200
    assert "not_kept" in archived(job.id).result


def test_drain_hands_over_as_a_worker_does(
    declare: Declare, shipping: EndpointServer, endpoint: Program
) -> None:
    shipping.answer(ACCEPTED)
    job = declare().enqueue()
    drain()
    assert handed_over(job)
    assert call_back(endpoint, job).status_code == 200
    assert archived(job.id).status == "succeeded"


def test_in_immediate_mode_jobs_are_sent_at_once(
    declare: Declare, shipping: EndpointServer
) -> None:
    shipping.answer(Reply(200, b'{"result": 7}'), ACCEPTED)
    entry = {"url": shipping.url, "secrets": []}
    settings = {"MODE": "immediate", "ENDPOINTS": {"shipping": entry}}
    with override_settings(JOBQUEUE=settings):
        ship = declare()
        done, accepted = ship.enqueue(order=1), ship.enqueue(order=2)
    assert (done.status, done.result) == ("succeeded", 7)
    assert accepted.status == "queued"
    assert len(shipping.received) == 2
