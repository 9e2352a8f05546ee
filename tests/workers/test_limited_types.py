"""When a job type of limited concurrency is claimed again."""

from __future__ import annotations

import threading

import pytest

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_limited import LOCK_TYPE
from django_jobqueue.workers.claiming import dispatcher, lane_scanner
from tests.sample import jobs
from tests.store.meanwhile import open_transaction, until_waiting
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived
from tests.workers.stopped_clock import StoppedClock

LIMITED = jobs.write_limited.name  # two at a time


def enqueue(count: int) -> None:
    jobs.write_limited.enqueue_many([{"journal": "/dev/null"}] * count)


def limited(worker: HandDriven) -> set[str]:
    """The types that it holds to be at their limit."""
    return set(worker.dispatcher.lane_selection.limited_until)


def test_a_type_at_its_limit_waits_for_an_end(make_worker: Make) -> None:
    first, second = make_worker(), make_worker()
    enqueue(4)
    first.claim()
    for _ in range(2):
        second.claim(told=True)
    assert limited(second) == {LIMITED}
    assert not second.worker.held

    assert limited(first) == {LIMITED}
    first.complete()
    assert limited(first) == set()
    first.claim()
    assert first.held == 2


def test_a_round_that_begins_as_the_last_scan_ends_scans_by_itself(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation found it: nothing was known to be at its limit, so the job waited
    for a poll."""
    clock = StoppedClock()
    for module in (dispatcher, lane_scanner):
        monkeypatch.setattr(module, "time", clock)
    enqueue(1)
    worker.work()
    enqueue(2)
    worker.claim(told=True)  # of a lane that had none; then a scan finds no more
    assert limited(worker) == set()
    enqueue(1)
    worker.claim(told=True)
    assert worker.held == 2
    assert limited(worker) == {LIMITED}


def test_a_type_at_its_limit_is_remembered_while_policies_are_read(
    worker: HandDriven,
) -> None:
    enqueue(3)
    worker.claim(told=True)
    worker.claim(told=True)
    assert limited(worker) == {LIMITED}
    worker.dispatcher.lane_selection.policies_changed()
    assert limited(worker) == {LIMITED}  # a short wait comes next
    worker.complete()
    worker.work()
    assert len(archived()) == 3


@pytest.mark.parametrize("threads", [1, 4], ids=["full", "with room"])
def test_who_has_no_jobs_is_at_no_limit(make_worker: Make, threads: int) -> None:
    worker = make_worker(threads=threads)
    for count in (1, 2):
        enqueue(1)
        worker.turn(told=True)
        assert len(archived()) == count
        worker.claim()  # in vain
        assert limited(worker) == set()


@pytest.mark.usefixtures("transactional_db")
def test_an_end_makes_room_at_once(worker: HandDriven, own: OwnConnection) -> None:
    enqueue(3)
    worker.claim()
    worker.run()
    worker.dispatcher.scanner.scan()  # there is one more
    worker.dispatcher.lane_selection.limited_until.clear()
    worker.dispatcher.jobs_arrived()
    claiming = threading.Thread(target=worker.claim)
    with open_transaction(own) as transaction:
        transaction.fetch(LOCK_TYPE, {"job_type": LIMITED})
        claiming.start()
        until_waiting()
        assert limited(worker) == {LIMITED}
        worker.finish()
    claiming.join()

    assert limited(worker) == set()
    worker.work()
    assert len(archived()) == 3


def test_a_type_with_room_is_asked_for_each_job(worker: HandDriven) -> None:
    jobs.add.enqueue(1)  # with two lanes, a glance says which has a job
    enqueue(1)
    worker.work()
    for count in (1, 2):
        enqueue(1)
        worker.claim(told=True)
        assert worker.held == count
    worker.complete()
    assert limited(worker) == set()
