"""A worker driven by hand: what is claimed, when, and for how many slots."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News
from django_jobqueue.store.queue import claim, release
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming import claimer as claimer_module
from django_jobqueue.workers.claiming.claimer import (
    RECHECK_FIRST,
    RECHECK_LONGEST,
    Claimer,
    UnconfirmedClaims,
)
from django_jobqueue.workers.executors import base
from django_jobqueue.workers.executors.base import Executor
from tests.sample import jobs
from tests.store.meanwhile import Hearing
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.waiting import eventually

Make = Callable[..., HandDriven]


def held(worker: HandDriven) -> int:
    return len(worker.worker.held)


def test_only_as_many_jobs_are_claimed_as_there_are_slots(make_worker: Make) -> None:
    worker = make_worker(threads=2)
    block = threading.Event()
    fill_slots(worker, block, 5)
    worker.claim()
    assert held(worker) == 2
    block.set()
    worker.work()
    assert len(archived()) == 5


def fill_slots(worker: HandDriven, block: threading.Event, count: int) -> None:
    """Make the slots wait for an event, and enqueue jobs for them."""
    executor = worker.worker.executors[0]
    run = executor._run  # type: ignore[attr-defined]

    def wait(attempt: object) -> object:
        block.wait(20)
        return run(attempt)

    executor._run = wait  # type: ignore[attr-defined]
    jobs.add.enqueue_many([{"a": number} for number in range(count)])


def test_more_urgent_jobs_run_first(make_worker: Make, journal: str) -> None:
    worker = make_worker(threads=1)
    for word, priority in (("low", -5), ("high", 50), ("none", 0)):
        jobs.write.using(priority=priority).enqueue(journal, word)
    worker.work()
    assert [words[1] for words in jobs.notes(journal) if words[0] == "start"] == [
        "high",
        "none",
        "low",
    ]


def test_job_types_of_one_priority_take_turns(make_worker: Make, journal: str) -> None:
    worker = make_worker(threads=1, async_slots=0)
    for number in range(3):
        jobs.write.enqueue(journal, f"w{number}")
    for _ in range(3):
        jobs.look.enqueue(journal)
    worker.work()
    kinds = ["w" if words[0] == "start" else "l" for words in jobs.notes(journal)]
    order = [
        kind
        for kind, words in zip(kinds, jobs.notes(journal), strict=True)
        if words[0] != "end"
    ]
    assert order in (list("wlwlwl"), list("lwlwlw"))


def test_only_subscribed_queues_are_claimed(make_worker: Make) -> None:
    worker = make_worker(queues=("mail",))
    jobs.add.enqueue(1)
    mail = jobs.add.using(queue="mail").enqueue(2)
    worker.work()
    assert [job.id for job in archived()] == [mail.id]
    assert len(queued()) == 1


def test_a_type_that_this_process_does_not_know_waits(worker: HandDriven) -> None:
    JobType.objects.create(name="tomorrow.job")
    QueuedJob.objects.create(job_type_id="tomorrow.job")
    jobs.add.enqueue(1)
    worker.work()
    (waiting,) = queued()
    assert (waiting.job_type_id, waiting.attempts) == ("tomorrow.job", 0)
    assert worker.worker.is_idle


def test_sync_and_async_jobs_have_slots_of_their_own(make_worker: Make) -> None:
    worker = make_worker(threads=0, async_slots=5)
    jobs.add.enqueue(1)
    jobs.aadd.enqueue(1)
    worker.work()
    assert [job.job_type_id for job in archived()] == ["tests.sample.aadd"]


def test_a_future_job_waits_for_its_time(worker: HandDriven) -> None:
    jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    for _ in range(12):
        rest = worker.claim()
    assert queued()[0].attempts == 0
    assert 0 < rest <= 5


def test_the_rest_ends_when_the_next_job_is_due(worker: HandDriven) -> None:
    jobs.add.using(run_after=timedelta(milliseconds=700)).enqueue(1)
    rests = [worker.claim() for _ in range(12)]
    assert max(rests) <= 0.7


def test_an_idle_worker_rests_longer_and_longer(worker: HandDriven) -> None:
    rests = [worker.claim() for _ in range(10)]
    assert rests == sorted(rests)
    assert rests[-1] == 1.0  # without LISTEN


def test_pausing_a_type_holds_from_the_next_claim(worker: HandDriven) -> None:
    jobs.add.enqueue(1)
    operations.pause(["tests.sample.add"], reason="broken", by="anna")
    worker.claim()
    assert [job.status for job in queued()] == ["queued"]
    operations.resume(["tests.sample.add"])
    worker.work()
    assert len(archived()) == 1


def test_pausing_a_queue_holds_from_the_next_claim(worker: HandDriven) -> None:
    jobs.add.using(queue="mail").enqueue(1)
    jobs.add.enqueue(2)
    operations.pause(["mail"], queues=True)
    worker.work()
    assert [job.queue for job in queued()] == ["mail"]
    operations.resume(["mail"], queues=True)
    worker.work()
    assert queued() == []


def test_operators_override_policies_while_workers_run(worker: HandDriven) -> None:
    worker.claim()
    JobType.objects.filter(name="tests.sample.fail").update(max_attempts_override=1)
    worker.worker.dispatcher.policies_changed()
    jobs.fail.enqueue()
    worker.work()
    (job,) = archived()
    assert (job.status, job.attempts) == ("failed", 1)


def test_a_limited_type_keeps_its_limit_over_workers(make_worker: Make) -> None:
    first, second = make_worker(threads=4), make_worker(threads=4)
    block = threading.Event()
    for worker in (first, second):
        fill_slots(worker, block, 0)
    jobs.write_limited.enqueue_many([{"journal": "/dev/null"}] * 6)
    first.claim()
    second.claim()
    assert held(first) + held(second) == 2  # its concurrency
    block.set()
    first.work()
    second.work()
    assert len(archived()) == 6


def test_a_limit_that_operators_change_holds_at_once(worker: HandDriven) -> None:
    worker.claim()
    JobType.objects.filter(name="tests.sample.add").update(concurrency_override=0)
    worker.worker.dispatcher.policies_changed()
    jobs.add.enqueue(1)
    worker.claim()
    assert held(worker) == 0
    JobType.objects.filter(name="tests.sample.add").update(concurrency_override=None)
    worker.worker.dispatcher.policies_changed()
    worker.work()
    assert len(archived()) == 1


def test_short_jobs_are_claimed_ahead_and_long_ones_are_not(make_worker: Make) -> None:
    worker = make_worker(threads=1)
    executor = worker.worker.executors[0]
    for _ in range(20):
        executor.runtimes.ran("tests.sample.add", 0.001)
    block = threading.Event()
    fill_slots(worker, block, 30)
    worker.claim()
    assert held(worker) == 30
    block.set()
    worker.work()

    block.clear()
    jobs.write.enqueue_many([{"journal": "/dev/null"}] * 5)
    worker.claim()
    assert held(worker) == 1
    block.set()
    worker.work()


def test_a_full_worker_claims_ahead_no_more_short_jobs_than_it_has_room_for(
    make_worker: Make,
) -> None:
    worker = make_worker(threads=1, async_slots=0)
    executor = worker.worker.executors[0]
    for _ in range(20):
        executor.runtimes.ran("tests.sample.add", 0.001)
    block = threading.Event()
    fill_slots(worker, block, 1)
    worker.claim()
    assert held(worker) == 1
    jobs.add.enqueue_many([{"a": number} for number in range(200)])
    worker.worker.dispatcher.jobs_arrived()
    worker.claim()
    ahead = executor.runtimes.prefetch("tests.sample.add", 1)
    assert 0 < ahead < 200
    assert held(worker) == 1 + ahead
    worker.worker.dispatcher.jobs_arrived()
    rest = worker.claim()
    assert held(worker) == 1 + ahead
    assert 0 < rest < 1  # it looks after what waits for a slot
    block.set()
    worker.work()
    assert len(archived()) == 201


def test_careful_jobs_are_never_claimed_ahead(make_worker: Make) -> None:
    worker = make_worker(threads=1)
    executor = worker.worker.executors[0]
    for _ in range(20):
        executor.runtimes.ran("tests.sample.write_once", 0.001)
    block = threading.Event()
    fill_slots(worker, block, 0)
    jobs.write_once.enqueue_many([{"journal": "/dev/null"}] * 5)
    worker.claim()
    assert held(worker) == 1
    block.set()
    worker.work()
    assert len(archived()) == 5


def test_what_waits_in_the_buffer_too_long_is_given_back(make_worker: Make) -> None:
    worker = make_worker(threads=1)
    executor = worker.worker.executors[0]
    for _ in range(20):
        executor.runtimes.ran("tests.sample.add", 0.001)
    block = threading.Event()
    fill_slots(worker, block, 10)
    worker.claim()
    assert held(worker) == 10
    for attempt in executor._buffer:
        attempt.claimed -= 100
    worker.worker.dispatcher.close_doors()
    worker.claim()
    block.set()
    worker.run()
    worker.finish()
    assert held(worker) == 0
    assert {(job.status, job.attempts, job.worker_id) for job in queued()} == {
        ("queued", 0, None)
    }
    assert len(queued()) + len(archived()) == 10


def test_a_drained_worker_gives_back_what_it_has_not_started(
    make_worker: Make,
) -> None:
    worker = make_worker(threads=1)
    executor = worker.worker.executors[0]
    for _ in range(20):
        executor.runtimes.ran("tests.sample.add", 0.001)
    block = threading.Event()
    fill_slots(worker, block, 10)
    worker.claim()
    worker.worker.drain()
    assert worker.claim() > 1  # it looks only for cancelled jobs
    assert held(worker) == 1
    block.set()
    worker.run()
    worker.finish()
    assert len(archived()) == 1
    assert len(queued(status="queued", attempts=0)) == 9


def test_jobs_of_a_claim_without_an_answer_are_given_back(
    worker: HandDriven, own: OwnConnection
) -> None:
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()  # held, its outcome not written yet
    lost = jobs.add.enqueue(2)
    claimer: Claimer = worker.worker.dispatcher.claimer
    lanes = claimer.lane_selection.lanes.marks()
    assert [job.id for job in claim.claim(own, worker.worker.id, lanes, 9)] == [lost.id]

    claimer.unconfirmed.arise()  # as after a lost connection
    worker.worker.dispatcher._hungry = worker.worker.dispatcher._news = False
    claimer.release_unconfirmed()
    assert {(job.id, job.status) for job in queued()} == {
        (lost.id, "queued"),
        (next(iter(worker.worker.held)).job.id, "running"),
    }
    worker.work()
    assert len(archived(status="succeeded", attempts=1)) == 2


def test_a_claim_that_is_committed_long_after_its_answer_was_lost_is_given_back(
    worker: HandDriven, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.add.enqueue(1)
    worker.work()
    really_claim, under_way = claim.claim, list[Callable[[], object]]()

    def lose(db: OwnConnection, *args: Any) -> object:
        under_way.append(partial(really_claim, own, *args))
        monkeypatch.undo()
        raise StoreUnavailable("the server is silent", retry_in=0.1)

    lost = jobs.add.enqueue(2)
    monkeypatch.setattr(claimer_module.claim, "claim", lose)
    with pytest.raises(StoreUnavailable):
        worker.claim()
    JobType.objects.update(paused=True)
    rests = [worker.claim() for _ in range(3)]
    assert all(0 < rest <= RECHECK_FIRST * 4 for rest in rests)
    assert queued()[0].status == "queued"

    JobType.objects.update(paused=False)
    assert under_way.pop()(), "now it is committed"
    assert queued(status="running")[0].id == lost.id

    def done() -> list[ArchivedJob]:
        worker.claim()
        worker.run()
        worker.finish()
        return archived(id=lost.id)

    assert [job.attempts for job in eventually(done)] == [1]


def test_the_looks_for_a_lost_claim_become_rare_and_never_end() -> None:
    unconfirmed = UnconfirmedClaims()
    assert unconfirmed.seconds_until_due == math.inf
    unconfirmed.arise()
    rests = []
    for _ in range(30):
        assert unconfirmed.seconds_until_due >= 0
        unconfirmed.postpone()
        rests.append(round(unconfirmed.seconds_until_due, 1))
    assert rests[:4] == [RECHECK_FIRST * 2**n for n in range(4)]
    assert set(rests[10:]) == {RECHECK_LONGEST}


@pytest.mark.parametrize("where", ["_make", "_held"])
def test_whatever_goes_wrong_behind_a_claim_its_jobs_are_given_back(
    worker: HandDriven, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = jobs.add.enqueue(1)
    worker.claim()
    worker.work()
    claimer: Claimer = worker.worker.dispatcher.claimer

    def fail(*args: object) -> None:
        raise MemoryError

    made = jobs.add.enqueue(2)
    with monkeypatch.context() as patch:
        if where == "_make":
            patch.setattr(claimer, "_make", fail)
        else:
            patch.setattr(claimer, "_held", MagicMock(update=fail))
        with pytest.raises(MemoryError):
            worker.claim()
        assert queued()[0].status == "running"
    worker.work()
    assert archived(id=made.id)[0].attempts == 1


def test_a_job_released_behind_the_mark_is_found_by_the_next_look(
    worker: HandDriven, own: OwnConnection
) -> None:
    first = jobs.add.using(queue="default").enqueue(1)
    QueuedJob.objects.update(run_after="2020-01-01T00:00Z")
    worker.claim()
    worker.run()
    jobs.add.enqueue(2)
    worker.claim()
    worker.run()
    worker.finish()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (id, job_type, data, run_after) VALUES "
            "(%s, 'tests.sample.add', '{\"a\": 3}', '2020-01-01')",
            [UUID(int=7)],
        )
    worker.work()
    assert {job.id for job in archived()} >= {first.id, UUID(int=7)}


def test_an_operator_cancels_a_running_job(worker: HandDriven, journal: str) -> None:
    made = jobs.slow.using(queue="default").enqueue(60)
    worker.claim()
    assert operations.cancel([made.id], by="anna").asked == [made.id]
    worker.worker.dispatcher._cancellation_poll._next_at = 0.0
    worker.claim()  # the net: no notification is heard here
    worker.run()
    worker.finish()
    (job,) = archived()
    assert (job.status, job.attempts) == ("cancelled", 1)


@pytest.mark.parametrize("quarantined", [False, True])
def test_an_operator_cancels_a_running_job_of_a_worker_that_claims_nothing_more(
    make_worker: Callable[..., HandDriven], quarantined: bool
) -> None:
    """As one that was drained, or ends while its successor works."""
    made = jobs.slow.using(queue="default").enqueue(60)
    QueuedJob.objects.update(quarantined=quarantined)
    worker = make_worker(quarantined=quarantined)
    worker.claim()
    eventually(lambda: worker.worker.running)
    worker.worker.drain()
    assert operations.cancel([made.id]).asked == [made.id]
    worker.worker.dispatcher._cancellation_poll._next_at = 0.0
    assert worker.claim() < FOREVER
    worker.run()
    worker.finish()
    assert archived()[0].status == "cancelled"
    worker.worker.dispatcher._cancellation_poll._next_at = 0.0
    assert worker.claim() == FOREVER


def test_a_released_job_is_run_again_by_another_worker(
    make_worker: Make, own: OwnConnection
) -> None:
    first, second = make_worker(), make_worker()
    block = threading.Event()
    fill_slots(first, block, 1)
    first.claim()
    (job,) = queued()
    assert release.release(own, first.worker.id, [job.id], [job.fence]) == 1
    second.work()
    block.set()
    first.run()
    first.finish()  # too late: its fence is old
    (done,) = archived()
    assert done.worker == second.worker.name
    assert (done.status, done.attempts) == ("succeeded", 1)
    assert queued() == []


def test_a_worker_is_not_idle_when_something_ended_since_its_last_round(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = worker.worker.dispatcher
    worker.claim()
    assert dispatcher.is_idle
    dispatcher.ended([])
    assert not dispatcher.is_idle
    worker.claim()
    assert dispatcher.is_idle

    def ends_meanwhile() -> bool:
        dispatcher.ended([])
        return False

    monkeypatch.setattr(dispatcher, "_scan", ends_meanwhile)
    worker.claim()
    assert not dispatcher.is_idle


def test_jobs_that_end_while_the_claim_goes_on_leave_no_rest(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_worker(threads=2)
    fill = Claimer.fill

    def slowly(self: Claimer, executor: Executor, *, due: bool) -> tuple[int, bool]:
        found = fill(self, executor, due=due)
        worker.run()
        return found

    monkeypatch.setattr(Claimer, "fill", slowly)
    jobs.add.enqueue_many([{"a": number} for number in range(5)])
    assert worker.claim() == 0
    assert held(worker) == 2


def test_nothing_is_claimed_while_too_many_outcomes_wait_to_be_written(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MOST_UNWRITTEN", 3)
    worker = make_worker(threads=2)
    jobs.add.enqueue_many([{"a": number} for number in range(9)])
    for _ in range(5):
        worker.claim()
        worker.run()
    assert worker.worker.completer.waiting == 4  # two, and two more
    assert len(queued(status="queued")) == 5
    worker.finish()
    worker.claim()
    assert held(worker) == 2
    worker.work()
    assert len(archived()) == 9


def test_a_full_worker_claims_as_soon_as_a_slot_is_free(make_worker: Make) -> None:
    worker = make_worker(threads=1, async_slots=0)
    jobs.add.enqueue(1)
    jobs.write_once.enqueue("/dev/null")
    worker.work()
    block = threading.Event()
    fill_slots(worker, block, 1)
    worker.worker.dispatcher.jobs_arrived()
    worker.claim()
    jobs.write.enqueue("/dev/null")  # of a type that it has not seen yet
    worker.worker.dispatcher.jobs_arrived()
    worker.claim()
    dispatcher = worker.worker.dispatcher
    dispatcher._woken.clear()
    block.set()
    worker.run()
    assert dispatcher._woken.is_set()
    worker.claim()
    assert {attempt.job.job_type for attempt in worker.worker.held} == {
        jobs.add.name,
        jobs.write.name,
    }


def test_a_worker_looks_when_a_job_is_due_again_that_failed_after_long(
    worker: HandDriven, other: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ear, dispatcher = Hearing(other), worker.worker.dispatcher
    monkeypatch.setattr(dispatcher, "_gets_notifications", lambda: True)
    jobs.say.enqueue("retry")
    worker.claim()
    worker.run()
    while worker.claim() < conf.poll_interval:  # until it rests for as long as it may
        pass
    assert ear.heard() == []
    worker.finish()
    assert ear.heard() == ["q:default"]
    assert queued()[0].attempts == 1
    dispatcher._woken.clear()
    worker.worker._hear(News.JOBS, "default")
    assert dispatcher._woken.is_set()
    QueuedJob.objects.update(run_after=timezone.now() + timedelta(seconds=3))
    assert worker.claim() <= 3


def test_who_waits_for_the_end_of_a_drain_does_not_make_the_rounds_follow_each_other(
    worker: HandDriven,
) -> None:
    """Where a claim takes as long as the time between two looks, each look fell into a
    round, and the drain had no end."""
    dispatcher = worker.worker.dispatcher
    assert not worker.worker.is_idle  # it has not looked yet
    assert not worker.worker.finish_drain()
    assert not dispatcher._woken.is_set()
    dispatcher.is_resting = True
    assert not worker.worker.finish_drain()
    assert dispatcher._woken.is_set()


def test_what_is_claimed_in_a_round_that_fails_later_is_watched(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*, busy: bool) -> list[Lane]:
        raise StoreUnavailable("gone", retry_in=1)

    jobs.add.enqueue(1)
    worker.work()
    jobs.add.enqueue(1)
    dispatcher = worker.worker.dispatcher
    dispatcher.jobs_arrived()
    monkeypatch.setattr(dispatcher.scanner, "next_at", 0.0)
    monkeypatch.setattr(dispatcher.scanner, "scan", gone)
    worker.worker.activity.last = 0.0
    with pytest.raises(StoreUnavailable):
        worker.claim()
    assert held(worker) == 1
    assert worker.worker.activity.last > 0
