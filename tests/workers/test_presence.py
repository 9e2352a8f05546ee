"""What a worker says of itself in the roster, and when."""

from __future__ import annotations

import threading

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.workers.presence import Presence
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db(transaction=True)


class Host:
    """What others of its host see of a worker that has a presence."""

    def __init__(self, worker: HandDriven) -> None:
        self.wakeups = WakeupPipes()
        self.table = ProcessTable(1, self.wakeups)
        self.table.can_listen = True
        self.table.write(0, pid=1)
        self.presence = Presence(worker.worker, self.table, 0)
        worker.worker.activity.wakes(self.presence.claimed)

    @property
    def said(self) -> tuple[int, int, int]:
        """Jobs that are held and run, and that were claimed in all."""
        entry = self.table.entry(0)
        return entry.held, entry.running, entry.claimed


@pytest.fixture
def host(worker: HandDriven) -> Host:
    return Host(worker)


def test_that_it_holds_a_job_is_said_before_its_handler_starts(
    worker: HandDriven, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler may keep everybody in its process from saying it later."""
    seen: list[tuple[int, int, int]] = []
    for executor in worker.worker.executors:
        monkeypatch.setattr(executor, "put", lambda attempts: seen.append(host.said))
    assert host.said == (0, 0, 0)
    jobs.add.enqueue(1)
    worker.claim()
    assert [said for said in seen if said[0]] == [(1, 0, 1)]


def test_that_it_holds_none_is_said_later(worker: HandDriven, host: Host) -> None:
    for _ in range(2):
        jobs.add.enqueue(1)
        worker.claim()
        assert host.said[0] == 1
        worker.complete()
        host.presence.publish()
        assert host.said == (0, 0, 1)


def test_a_claim_wakes_those_who_rest(worker: HandDriven, host: Host) -> None:
    """Else they would look no sooner than when its process can say so."""
    host.table.last_activity_at -= 10 * conf.lease
    assert host.table.may_idle(lease_time(), conf.lease)
    jobs.add.enqueue(1)
    worker.claim()
    assert not host.table.may_idle(lease_time(), conf.lease)
    assert host.wakeups.supervisor.wait(0)[0]


def test_a_claim_beside_it_is_never_missed(worker: HandDriven, host: Host) -> None:
    """Whoever counts the jobs may be overtaken by a claim before it writes."""
    counting, claimed = threading.Event(), threading.Event()

    class Held(set[object]):
        def __len__(self) -> int:
            count = super().__len__()
            if not counting.is_set():
                counting.set()
                claimed.wait(0.2)  # it is held up by the lock of who counts
            return count

    held = worker.worker.held = Held()
    speaker = threading.Thread(target=host.presence.publish)
    speaker.start()
    assert counting.wait(10)
    held.add(object())
    host.presence.claimed()
    claimed.set()
    speaker.join(10)
    assert host.said[0] == 1
