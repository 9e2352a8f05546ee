"""What a worker says of itself in the roster, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable
from django_jobqueue.workers.presence import Presence
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wakeups() -> WakeupPipes:
    return WakeupPipes()


@pytest.fixture
def entry(worker: HandDriven, wakeups: WakeupPipes) -> Callable[[], ProcessEntry]:
    """What others see of the worker, which has a presence."""
    process_table = ProcessTable(1, wakeups)
    process_table.can_listen = True
    process_table.write(0, pid=1)
    presence = Presence(worker.worker, process_table, 0)
    worker.worker.activity.wakes(presence.claimed)
    worker.presence, worker.process_table = presence, process_table  # type: ignore[attr-defined]
    return lambda: process_table.entry(0)


def test_that_it_holds_a_job_is_said_before_its_handler_starts(
    worker: HandDriven,
    entry: Callable[[], ProcessEntry],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A handler may keep everybody in its process from saying it later."""
    seen: list[ProcessEntry] = []
    for executor in worker.worker.executors:
        monkeypatch.setattr(executor, "put", lambda attempts: seen.append(entry()))
    assert (entry().held, entry().claimed) == (0, 0)
    jobs.add.enqueue(1)
    worker.claim()
    assert [(one.held, one.claimed) for one in seen if one.held] == [(1, 1)]


def test_that_it_holds_none_any_more_is_said_when_it_next_speaks(
    worker: HandDriven, entry: Callable[[], ProcessEntry]
) -> None:
    for _ in range(2):
        jobs.add.enqueue(1)
        worker.claim()
        assert entry().held == 1
        worker.run()
        worker.finish()
        worker.presence.publish()  # type: ignore[attr-defined]
        assert (entry().held, entry().running, entry().claimed) == (0, 0, 1)


def test_a_claim_wakes_those_who_rest(
    worker: HandDriven, entry: Callable[[], ProcessEntry], wakeups: WakeupPipes
) -> None:
    """Else they would look no sooner than when its process can say so."""
    process_table: ProcessTable = worker.process_table  # type: ignore[attr-defined]
    process_table.last_activity_at -= 10 * conf.lease
    assert process_table.may_idle(lease_time(), conf.lease)
    jobs.add.enqueue(1)
    worker.claim()
    assert not process_table.may_idle(lease_time(), conf.lease)
    assert wakeups.supervisor.wait(0)[0]


def test_a_claim_beside_the_saying_is_never_said_to_be_none(
    worker: HandDriven, entry: Callable[[], ProcessEntry]
) -> None:
    """Whoever counts the jobs may be overtaken by a claim before it writes."""
    counting, claimed = threading.Event(), threading.Event()

    class Held(set[object]):
        def __len__(self) -> int:
            count = super().__len__()
            if not counting.is_set():
                counting.set()
                claimed.wait(0.2)  # it is held up by the lock of who counts
            return count

    held = worker.worker.held = Held()  # type: ignore[assignment]
    presence: Presence = worker.presence  # type: ignore[attr-defined]
    speaker = threading.Thread(target=presence.publish)
    speaker.start()
    assert counting.wait(10)
    held.add(object())
    presence.claimed()
    claimed.set()
    speaker.join(10)
    assert entry().held == 1
