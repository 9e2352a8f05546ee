"""A worker whose host listens for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_relay import ASYNC_ROOM, CHECKS, ROOM, SYNC_ROOM
from django_jobqueue.store.notify import News
from django_jobqueue.store.queue import claim
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


class Host:
    """Two entries; the worker is in the first one."""

    def __init__(self) -> None:
        self.pipes = WakeupPipes.with_workers(2)
        self.table = ProcessTable(2, self.pipes)
        self.table.listener_hears = True
        relay = self.table.relay()
        assert relay is not None
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
def hearing(make_worker: Callable[..., HandDriven], host: Host) -> HandDriven:
    """A worker with one slot of each sort, which is idle."""
    worker = make_worker(threads=1, async_slots=1)
    dispatcher = worker.worker.dispatcher
    dispatcher._host_news = host.table.news_of(0)
    dispatcher._gets_notifications = lambda: host.table.listener_hears
    for _ in range(3):
        worker.claim()
    return worker


def test_a_dispatcher_does_not_wait_when_jobs_were_heard_of_since_its_claim_began(
    hearing: HandDriven, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = claim.claim

    def claim_too_soon(*arguments: object) -> object:
        claimed = real(*arguments)  # type: ignore[arg-type]
        jobs.add.enqueue(1)
        host.relay.jobs_arrived()
        monkeypatch.setattr(claim, "claim", real)
        return claimed

    host.relay.jobs_arrived()
    monkeypatch.setattr(claim, "claim", claim_too_soon)
    jobs.add.enqueue(0)
    hearing.work()
    hearing.worker.dispatcher._sleep(3_600.0)
    hearing.work()
    assert host.table.entry(0).answered == host.table.jobs_heard
    assert hearing.worker.finished == 2


def test_a_waiting_dispatcher_is_woken_for_a_job_and_answers(
    hearing: HandDriven, host: Host
) -> None:
    dispatcher = hearing.worker.dispatcher
    dispatcher.start()
    eventually(lambda: host.readiness == ROOM)
    jobs.add.enqueue(1)
    host.relay.jobs_arrived()
    eventually(lambda: hearing.worker.held)
    eventually(lambda: host.table.entry(0).answered == host.table.jobs_heard)
    assert dispatcher.stop(20)
    hearing.run()
    hearing.finish()


def test_a_dispatcher_is_woken_from_other_threads(
    hearing: HandDriven, host: Host
) -> None:
    dispatcher = hearing.worker.dispatcher
    dispatcher.start()
    eventually(lambda: host.readiness == ROOM)
    dispatcher.close_doors()
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
    hearing.run()
    hearing.finish()


def test_a_worker_says_what_it_has_room_for(hearing: HandDriven, host: Host) -> None:
    dispatcher = hearing.worker.dispatcher
    threads = hearing.worker.executors[0]
    assert dispatcher._readiness(60.0) == ROOM
    assert dispatcher._readiness(0.001) == CHECKS | ROOM
    threads.slots = 0
    assert dispatcher._readiness(60.0) == ASYNC_ROOM
    dispatcher.close_doors()
    assert dispatcher._readiness(60.0) == 0
    threads.slots = 1


def test_a_dispatcher_that_fails_passes_notifications_on(
    hearing: HandDriven, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> float:
        raise ValueError

    passed_on: list[tuple[News, str]] = []
    dispatcher = hearing.worker.dispatcher
    monkeypatch.setattr(dispatcher, "tick", fail)
    monkeypatch.setattr(dispatcher, "_pass_on", lambda *news: passed_on.append(news))
    dispatcher.start()
    eventually(lambda: dispatcher.is_resting)
    host.pipes.workers[0].send("c:1")
    eventually(lambda: passed_on == [(News.CANCEL, "1")])
    assert dispatcher.stop(20)
