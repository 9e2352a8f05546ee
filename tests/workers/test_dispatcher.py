"""A worker driven by hand: what is claimed, when, and for how many slots."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim
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
from tests.store.rows import make
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived, queued
from tests.support.waiting import eventually

NULL = "/dev/null"


@dataclass
class Gate:
    """What the jobs in the slots of a worker wait for."""

    opens: threading.Event
    worker: HandDriven

    def open(self) -> None:
        """Let all run, and whatever is queued."""
        self.opens.set()
        self.worker.work()
        self.opens.clear()


def gated(worker: HandDriven, *short: Any) -> Gate:
    """The same worker, whose threads wait for a gate; it knows of the jobs of some
    handlers that they are short."""
    gate, executor = Gate(threading.Event(), worker), worker.worker.executors[0]
    run = executor._run  # private: to wait before it

    def wait(attempt: object) -> object:
        gate.opens.wait(20)
        return run(attempt)

    executor._run = wait  # private: as above
    for handler in short:
        worker.has_run(handler, 0.001)
    return gate


def add_many(count: int) -> None:
    jobs.add.enqueue_many([{"a": number} for number in range(count)])


def test_only_as_many_jobs_are_claimed_as_there_are_slots(make_worker: Make) -> None:
    worker = make_worker(threads=2)
    gate = gated(worker)
    add_many(5)
    worker.claim()
    assert worker.held == 2
    gate.open()
    assert len(archived()) == 5


def test_more_urgent_jobs_run_first(make_worker: Make, journal: str) -> None:
    worker = make_worker(threads=1)
    for word, priority in (("low", -5), ("high", 50), ("none", 0)):
        jobs.write.using(priority=priority).enqueue(journal, word)
    worker.work()
    started = [words[1] for words in jobs.notes(journal) if words[0] == "start"]
    assert started == ["high", "none", "low"]


def test_a_worker_claims_only_what_it_can_run(make_worker: Make) -> None:
    worker = make_worker(threads=0, async_slots=5, queues=("mail",))
    JobType.objects.create(name="tomorrow.job")
    make("tomorrow.job", queue="mail")  # which this process does not know
    jobs.add.using(queue="mail").enqueue(1)
    jobs.aadd.enqueue(1)
    mail = jobs.aadd.using(queue="mail").enqueue(2)
    worker.work()
    assert [job.id for job in archived()] == [mail.id]
    assert [job.attempts for job in queued()] == [0] * 3
    assert worker.worker.is_idle


def test_it_rests_longer_and_longer_until_a_job_is_due(worker: HandDriven) -> None:
    rests = [worker.claim() for _ in range(10)]
    assert rests == sorted(rests)
    assert rests[-1] == 1.0  # without LISTEN
    jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    assert 0 < [worker.claim() for _ in range(12)][-1] <= 5
    assert queued()[0].attempts == 0
    jobs.add.using(run_after=timedelta(milliseconds=700)).enqueue(1)
    worker.dispatcher.jobs_arrived()
    assert max(worker.claim() for _ in range(12)) <= 0.7


def test_pauses_hold_from_the_next_claim(worker: HandDriven) -> None:
    jobs.add.enqueue(1)
    jobs.keep.using(queue="mail").enqueue(1)
    operations.pause([jobs.add.name], reason="broken", by="anna")
    operations.pause(["mail"], queues=True)
    worker.claim()
    assert [job.status for job in queued()] == ["queued"] * 2
    operations.resume([jobs.add.name])
    worker.work()
    assert [job.queue for job in queued()] == ["mail"]
    operations.resume(["mail"], queues=True)
    worker.work()
    assert queued() == []


def test_what_operators_override_holds_at_once(worker: HandDriven) -> None:
    worker.claim()
    JobType.objects.filter(name=jobs.fail.name).update(max_attempts_override=1)
    JobType.objects.filter(name=jobs.add.name).update(concurrency_override=0)
    worker.dispatcher.policies_changed()
    jobs.fail.enqueue()
    jobs.add.enqueue(1)
    worker.work()
    (job,) = archived()
    assert (job.job_type_id, job.status, job.attempts) == (jobs.fail.name, "failed", 1)
    JobType.objects.filter(name=jobs.add.name).update(concurrency_override=None)
    worker.dispatcher.policies_changed()
    worker.work()
    assert len(archived()) == 2


def test_only_short_jobs_are_claimed_ahead(make_worker: Make) -> None:
    worker = make_worker(threads=1)
    gate = gated(worker, jobs.add, jobs.write_once)
    for handler, data, held in (
        (jobs.add, {"a": 1}, 30),
        (jobs.write, {"journal": NULL}, 1),
        (jobs.write_once, {"journal": NULL}, 1),
    ):
        handler.enqueue_many([data] * 30)
        worker.claim()
        assert worker.held == held
        gate.open()


def test_a_full_worker_claims_ahead_what_it_has_room_for(make_worker: Make) -> None:
    worker = make_worker(threads=1, async_slots=0)
    gate = gated(worker, jobs.add)
    add_many(1)
    worker.claim()
    assert worker.held == 1
    add_many(200)
    ahead = worker.worker.executors[0].runtimes.prefetch(jobs.add.name, 1)
    assert 0 < ahead < 200
    for _ in range(2):
        worker.dispatcher.jobs_arrived()
        rest = worker.claim()
        assert worker.held == 1 + ahead
    assert 0 < rest < 1  # it looks after what waits for a slot
    gate.open()
    assert len(archived()) == 201


@pytest.mark.parametrize("is_drained", [False, True], ids=["too long", "drained"])
def test_what_waits_too_long_is_given_back(make_worker: Make, is_drained: bool) -> None:
    worker = make_worker(threads=1)
    gate = gated(worker, jobs.add)
    add_many(10)
    worker.claim()
    assert worker.held == 10
    if is_drained:
        worker.worker.drain()
    else:
        JobType.objects.update(paused=True)  # else they would be claimed again
        for attempt in worker.worker.held:
            attempt.claimed -= 100
    rest = worker.claim()
    assert worker.held == 1
    assert rest > 1 or not is_drained  # it looks only for cancelled jobs
    assert len(queued(status="queued", attempts=0, worker_id=None)) == 9
    gate.opens.set()
    worker.complete()
    assert len(archived()) == 1


def test_unanswered_claims_are_given_back(
    worker: HandDriven, own: OwnConnection
) -> None:
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()  # held, its outcome not written yet
    lost = jobs.add.enqueue(2)
    claimer = worker.dispatcher.claimer
    lanes = claimer.lane_selection.lanes.marks()
    assert [job.id for job in claim.claim(own, worker.worker.id, lanes, 9)] == [lost.id]

    claimer.unconfirmed.arise()  # as after a lost connection
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
        worker.turn()
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


@pytest.mark.parametrize("what", ["attempts", "what is held"])
def test_whatever_goes_wrong_behind_a_claim_its_jobs_are_given_back(
    worker: HandDriven, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.add.enqueue(1)
    worker.work()
    made = jobs.add.enqueue(2)

    def fail(*args: object) -> None:
        raise MemoryError

    claimer = worker.dispatcher.claimer
    with monkeypatch.context() as patch:
        if what == "attempts":
            patch.setattr(claimer, "_make", fail)  # private: a fault in it
        else:  # private: likewise
            patch.setattr(claimer, "_held", MagicMock(update=fail))
        with pytest.raises(MemoryError):
            worker.claim()
        assert queued()[0].status == "running"
    worker.work()
    assert archived(id=made.id)[0].attempts == 1


def test_a_job_behind_the_mark_is_found(worker: HandDriven) -> None:
    first = make(data={"a": 1}, run_after="2020-01-01T00:00Z")
    worker.claim()
    worker.run()
    add_many(1)
    worker.turn()
    behind = make(data={"a": 3}, run_after="2020-01-01T00:00Z", id=UUID(int=7))
    worker.work()
    assert {job.id for job in archived()} >= {first, behind}


@pytest.mark.parametrize("quarantined", [False, True])
def test_a_cancel_arrives_without_notice(make_worker: Make, quarantined: bool) -> None:
    """Also of a worker that was drained, or ends while its successor works."""
    worker = make_worker(quarantined=quarantined)
    poll = worker.dispatcher._cancellation_poll  # private: to make it due
    for is_drained in (False, True):
        made = jobs.slow.using(queue="default").enqueue(60)
        QueuedJob.objects.update(quarantined=quarantined)
        worker.claim()
        eventually(lambda: worker.worker.running)
        if is_drained:
            worker.worker.drain()
        assert operations.cancel([made.id], by="anna").asked == [made.id]
        poll.next_at = 0.0
        assert worker.claim() < FOREVER
        worker.complete()
        (job,) = archived(id=made.id)
        assert (job.status, job.attempts) == ("cancelled", 1)
    poll.next_at = 0.0
    assert worker.claim() == FOREVER


def test_a_worker_is_not_idle_when_something_ended_since_its_last_round(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = worker.dispatcher
    worker.claim()
    assert dispatcher.is_idle
    dispatcher.ended([])
    assert not dispatcher.is_idle
    worker.claim()
    assert dispatcher.is_idle

    def ends_meanwhile(*, busy: bool) -> list[Lane]:
        dispatcher.ended([])
        return []

    monkeypatch.setattr(dispatcher.scanner, "scan", ends_meanwhile)
    dispatcher.jobs_arrived()
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
    add_many(5)
    assert worker.claim() == 0
    assert worker.held == 2


def test_nothing_is_claimed_while_too_many_outcomes_wait_to_be_written(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MOST_UNWRITTEN", 3)
    worker = make_worker(threads=2)
    add_many(9)
    for _ in range(5):
        worker.claim()
        worker.run()
    assert worker.completer.waiting == 4  # two, and two more
    assert len(queued(status="queued")) == 5
    worker.finish()
    worker.claim()
    assert worker.held == 2
    worker.work()
    assert len(archived()) == 9


def test_a_full_worker_claims_as_soon_as_a_slot_is_free(make_worker: Make) -> None:
    worker = make_worker(threads=1, async_slots=0)
    add_many(1)
    jobs.write_once.enqueue(NULL)
    worker.work()
    gate = gated(worker)
    add_many(1)
    for _ in range(2):
        worker.claim(told=True)
        jobs.write.enqueue(NULL)  # of a type that it has not seen yet
    assert not worker.dispatcher.is_woken
    gate.opens.set()
    worker.run()
    assert worker.dispatcher.is_woken
    worker.claim()
    held = {attempt.job.job_type for attempt in worker.worker.held}
    assert held == {jobs.add.name, jobs.write.name}


def test_a_worker_looks_when_a_job_is_due_again_that_failed_after_long(
    worker: HandDriven, other: OwnConnection
) -> None:
    ear = Hearing(other)
    worker.get_notifications()
    jobs.say.enqueue("retry")
    worker.claim()
    worker.run()
    while worker.claim() < conf.poll_interval:  # until it rests for as long as it may
        pass
    assert ear.heard() == []
    worker.finish()
    assert ear.heard() == ["q:default"]
    assert queued()[0].attempts == 1
    worker.dispatcher.jobs_arrived()  # as whoever hears it says
    QueuedJob.objects.update(run_after=timezone.now() + timedelta(seconds=3))
    assert worker.claim() <= 3


def test_who_waits_for_a_drain_does_not_hurry_the_rounds(worker: HandDriven) -> None:
    """Where a claim takes as long as the time between two looks, each look fell into a
    round, and the drain had no end."""
    dispatcher = worker.dispatcher
    assert not worker.worker.is_idle  # it has not looked yet
    assert not worker.worker.finish_drain()
    assert not dispatcher.is_woken
    dispatcher.is_resting = True
    assert not worker.worker.finish_drain()
    assert dispatcher.is_woken


def test_what_is_claimed_in_a_round_that_fails_later_is_watched(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*, busy: bool) -> list[Lane]:
        raise StoreUnavailable("gone", retry_in=1)

    jobs.add.enqueue(1)
    worker.work()
    jobs.add.enqueue(1)
    dispatcher = worker.dispatcher
    dispatcher.jobs_arrived()
    monkeypatch.setattr(dispatcher.scanner, "next_at", 0.0)
    monkeypatch.setattr(dispatcher.scanner, "scan", gone)
    worker.worker.activity.last = 0.0
    with pytest.raises(StoreUnavailable):
        worker.claim()
    assert worker.held == 1
    assert worker.worker.activity.last > 0
