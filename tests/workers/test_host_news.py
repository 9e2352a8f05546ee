"""A worker whose host listens for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_relay import (
    ASYNC_ROOM,
    CHECKS,
    ROOM,
    SYNC_ROOM,
    WorkerNews,
)
from django_jobqueue.store.queue import claim
from django_jobqueue.workers.claiming.lane_scanner import LaneScanner
from tests.sample import jobs
from tests.support.hand_driven import HandDriven, Make
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


class Host:
    """Two entries; the worker is in the first one."""

    def __init__(self) -> None:
        self.pipes = WakeupPipes.with_workers(2)
        self.table = ProcessTable(2, self.pipes)
        self.table.listener_hears = True
        relay = self.table.relay()
        self.relay = relay

    @property
    def readiness(self) -> int:
        return self.table.entry(0).readiness


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.pipes.close()


@pytest.fixture
def hear(make_worker: Make, host: Host) -> Make:
    """Make a worker that is idle, with one slot of each sort, or more threads."""

    def hear(threads: int = 1) -> HandDriven:
        news = host.table.news_of(0)
        worker = make_worker(host_news=news, threads=threads, async_slots=1)
        for _ in range(3):
            worker.claim()
        return worker

    return hear


@pytest.fixture
def hearing(hear: Make) -> HandDriven:
    return hear()


@pytest.fixture
def rests(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> Callable[[HandDriven, float], tuple[float, int]]:
    """For how long a dispatcher that is to rest for some seconds waits for the host,
    and for what it may be woken meanwhile."""
    waits: list[tuple[float, int]] = []

    def wait(news: WorkerNews, seconds: float) -> list[str]:
        waits.append((seconds, host.readiness))
        return []

    def rests(worker: HandDriven, seconds: float) -> tuple[float, int]:
        monkeypatch.setattr(WorkerNews, "wait", wait)
        worker.dispatcher._sleep(seconds)  # private: between two rounds of a thread
        return waits.pop()

    return rests


def test_a_dispatcher_does_not_wait_when_jobs_were_heard_of_since_its_claim_began(
    hear: Make, host: Host, rests: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearing, real = hear(threads=2), claim.claim

    def claim_too_soon(*arguments: Any) -> object:
        claimed = real(*arguments)
        host.relay.jobs_arrived()
        return claimed

    jobs.add.enqueue(0)
    host.relay.jobs_arrived()
    with monkeypatch.context() as patch:
        patch.setattr(claim, "claim", claim_too_soon)
        hearing.claim()
    assert hearing.held == 1
    hearing.complete()
    assert not hearing.dispatcher.is_woken
    assert rests(hearing, 3_600.0) == (0.0, ROOM)
    hearing.claim()
    assert rests(hearing, 3_600.0) == (3_600.0, ROOM)
    assert host.table.entry(0).answered == host.table.jobs_heard


def test_a_dispatcher_that_may_not_scan_yet_rests_and_does_not_answer(
    hearing: HandDriven, host: Host, rests: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a long scan of very many lanes; others may have the job."""
    pause = 2.0
    monkeypatch.setattr(LaneScanner, "pause", property(lambda _: pause))
    jobs.add.enqueue(0)
    host.relay.jobs_arrived()
    seconds, readiness = rests(hearing, hearing.claim())
    assert (0 < seconds <= pause, readiness & ROOM) == (True, ROOM)
    heard = host.table.jobs_heard
    assert (hearing.held, host.table.entry(0).answered) == (0, heard - 1)
    pause = 0.0
    hearing.claim()
    assert (hearing.held, host.table.entry(0).answered) == (1, heard)


def test_a_waiting_dispatcher_answers(hearing: HandDriven, host: Host) -> None:
    dispatcher = hearing.dispatcher
    dispatcher.start()
    eventually(lambda: host.readiness == ROOM)
    jobs.add.enqueue(1)
    host.relay.jobs_arrived()
    eventually(lambda: hearing.worker.held)
    eventually(lambda: host.table.entry(0).answered == host.table.jobs_heard)
    hearing.complete()
    eventually(lambda: host.readiness == ROOM)
    dispatcher.stop_claiming()  # from another thread
    eventually(lambda: host.readiness == 0)
    assert dispatcher.stop(20)


@pytest.mark.parametrize(
    ("neighbour", "texts"),
    [(ROOM, ["+0:2"]), (SYNC_ROOM, ["+0:2"]), (ASYNC_ROOM, []), (0, [])],
)
def test_a_full_worker_has_an_idle_one_woken(
    hearing: HandDriven, host: Host, neighbour: int, texts: list[str]
) -> None:
    host.table.write(1, pid=1, readiness=neighbour)
    host.relay.pipe.wait(0)
    jobs.add.enqueue(1)
    host.relay.jobs_arrived()
    hearing.claim()
    assert host.relay.pipe.wait(0) == texts
    hearing.complete()


def test_a_worker_says_what_it_has_room_for(hearing: HandDriven, rests: Any) -> None:
    threads = hearing.worker.executors[0]
    assert rests(hearing, 60.0)[1] == ROOM
    assert rests(hearing, 0.001)[1] == CHECKS | ROOM
    threads.slots = 0
    assert rests(hearing, 60.0)[1] == ASYNC_ROOM
    hearing.dispatcher.stop_claiming()
    assert rests(hearing, 60.0)[1] == 0
    threads.slots = 1


def test_a_dispatcher_that_fails_passes_notifications_on(
    hearing: HandDriven, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> float:
        raise ValueError

    cancelled: list[str] = []
    dispatcher = hearing.dispatcher
    monkeypatch.setattr(dispatcher, "tick", fail)
    monkeypatch.setattr(hearing.worker, "cancel", cancelled.append)
    dispatcher.start()
    eventually(lambda: dispatcher.is_resting)
    host.pipes.workers[0].send("c:1")
    eventually(lambda: cancelled == ["1"])
    assert dispatcher.stop(20)
