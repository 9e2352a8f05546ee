"""The renewal of leases: often while there is work, seldom while there is none."""

from __future__ import annotations

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.renewer import CHECK_EVERY, Renewer
from django_jobqueue.models import Worker
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import (
    DESIRES,
    IDLE_EXTENSION,
    ProcessTable,
)
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.store.connection import OwnConnection
from tests.support.hand_driven import HandDriven, Make


class IdleHost:
    """A worker that has had nothing to do for long, and the renewer of its lease."""

    def __init__(self, worker: HandDriven, own: OwnConnection) -> None:
        self.id = worker.worker.id
        self.wakeups = WakeupPipes()
        self.process_table = ProcessTable(2, self.wakeups)
        self.process_table.can_listen = True
        self.process_table.write(0, pid=1, worker=self.id, renewable=1)
        self.renewer = Renewer(self.process_table, own)
        self.process_table.last_activity_at -= 2 * conf.lease
        self.renewer.tick()

    def is_renewed(self) -> bool:
        before = Worker.objects.get(id=self.id).renewed_at
        self.renewer.tick()
        return Worker.objects.get(id=self.id).renewed_at > before

    def seconds(self) -> float:
        row = Worker.objects.get(id=self.id)
        return (row.lease_until - row.renewed_at).total_seconds()

    @property
    def desired(self) -> str:
        """What the worker is to do, as others in its host see it."""
        return DESIRES[self.process_table.entry(0).desired]

    @property
    def calls_supervisor(self) -> bool:
        """Whether the supervisor was woken since one last asked."""
        return self.wakeups.supervisor.wait(0)[0]

    @property
    def is_extended(self) -> bool:
        return bool(self.process_table.entry(0).extended)


@pytest.fixture
def idle(worker: HandDriven, own: OwnConnection) -> IdleHost:
    return IdleHost(worker, own)


def test_leases_of_idle_workers_are_renewed_for_longer(idle: IdleHost) -> None:
    assert idle.is_extended
    assert idle.seconds() == pytest.approx(conf.lease * (1 + IDLE_EXTENSION), abs=0.1)
    assert not idle.is_renewed()
    idle.renewer.next_at = 0.0  # a lease before it lapses
    assert idle.is_renewed()
    assert idle.is_extended


@pytest.mark.parametrize("has", ["held", "draining"])
def test_who_is_busy_has_an_ordinary_lease_again(idle: IdleHost, has: str) -> None:
    idle.process_table.write(0, **{has: 1})
    assert idle.is_renewed()
    assert not idle.is_extended
    assert idle.seconds() == pytest.approx(conf.lease, abs=0.1)
    idle.process_table.write(0, **{has: 0})
    idle.renewer.next_at = 0.0  # a third of a lease later
    assert idle.is_renewed()
    assert not idle.is_extended  # not for as long as a lease


def test_what_is_asked_of_workers_is_told_once(idle: IdleHost) -> None:
    Worker.objects.update(desired="drain")
    idle.renewer.next_at = 0.0
    idle.renewer.tick()
    assert idle.desired == "drain"
    assert not idle.is_renewed()
    assert idle.calls_supervisor
    idle.renewer.next_at = 0.0
    idle.renewer.tick()
    assert not idle.calls_supervisor

    # What a worker heard is learnt at the next look.
    Worker.objects.update(desired="stop")
    idle.process_table.write(0, calls=1)
    assert idle.is_renewed()
    assert idle.desired == "stop"
    assert not idle.is_renewed()
    idle.process_table.write(0, calls=2)
    assert idle.is_renewed()


def test_that_a_worker_drains_is_told_at_the_next_look(idle: IdleHost) -> None:
    for draining, state in ((1, "draining"), (0, "running")):
        idle.process_table.write(0, draining=draining)
        assert idle.is_renewed()
        assert Worker.objects.get(id=idle.id).state == state
        assert not idle.is_renewed()


def test_a_new_lease_is_renewed_at_once(idle: IdleHost, make_worker: Make) -> None:
    idle.process_table.write(1, pid=2, worker=make_worker().worker.id, renewable=1)
    assert idle.is_renewed()


def test_a_failed_renewal_is_repeated(idle: IdleHost, own: OwnConnection) -> None:
    idle.renewer.next_at = 0.0
    own.run("ALTER TABLE jobqueue_worker RENAME TO gone")
    with pytest.raises(StoreUnavailable):
        idle.renewer.tick()
    own.run("ALTER TABLE gone RENAME TO jobqueue_worker")
    assert idle.is_renewed()


def test_without_notifications_no_lease_is_longer(idle: IdleHost) -> None:
    idle.process_table.can_listen = False
    assert idle.is_renewed()
    assert not idle.is_extended
    idle.renewer.next_at = 0.0
    idle.process_table.write(0, running=2)
    assert idle.is_renewed()
    assert Worker.objects.get(id=idle.id).running == 2
    idle.renewer.next_at = 0.0
    idle.process_table.write(0, renewable=0)  # its process is paused
    assert not idle.is_renewed()


def test_an_idle_renewer_rests_until_the_next_renewal(idle: IdleHost) -> None:
    assert idle.renewer.tick() > CHECK_EVERY
    idle.process_table.activity(lease_time(), conf.lease)
    assert idle.wakeups.maintenance.wait(0)[0]
    assert idle.is_renewed()
    assert not idle.is_extended
    assert idle.renewer.tick() <= CHECK_EVERY


@pytest.mark.parametrize(("state", "is_lost"), [("stopped", 0), ("lost", 1)])
def test_only_a_worker_that_did_not_end_in_good_order_was_given_up_by_others(
    idle: IdleHost, caplog: pytest.LogCaptureFixture, state: str, is_lost: int
) -> None:
    """It may end between our look at who is there and the renewal."""
    Worker.objects.update(state=state)
    idle.renewer.next_at = 0.0
    assert idle.calls_supervisor in (True, False)  # of what was before
    idle.renewer.tick()
    assert idle.process_table.entry(0).lost == is_lost
    assert idle.calls_supervisor is bool(is_lost)
    assert ("lost its lease" in caplog.text) is bool(is_lost)
