"""The renewal of leases: often while there is work, seldom while there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.renewer import CHECK_EVERY, Renewer
from django_jobqueue.models import Worker
from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import DESIRES, EASE, ProcessTable
from django_jobqueue.store.connection import OwnConnection
from tests.conftest import HandDriven

Make = Callable[..., HandDriven]


class Calm:
    """A worker that has had nothing to do for long, and the renewer of its lease."""

    def __init__(self, worker: HandDriven, own: OwnConnection) -> None:
        self.id = worker.worker.id
        self.wakeups = WakeupPipes()
        self.process_table = ProcessTable(2, self.wakeups)
        self.process_table.can_listen = True
        self.process_table.write(0, pid=1, worker=self.id, renewable=1)
        self.renewer = Renewer(self.process_table, own)
        self.process_table.stirred_at -= 2 * conf.lease
        self.renewer.tick()

    def is_renewed(self) -> bool:
        """Whether the renewer, at its next look, renews the lease."""
        before = Worker.objects.get(id=self.id).renewed_at
        self.renewer.tick()
        return Worker.objects.get(id=self.id).renewed_at > before

    def seconds(self) -> float:
        """How long its lease holds."""
        row = Worker.objects.get(id=self.id)
        return (row.lease_until - row.renewed_at).total_seconds()

    @property
    def is_eased(self) -> bool:
        return bool(self.process_table.entry(0).eased)


@pytest.fixture
def calm(worker: HandDriven, own: OwnConnection) -> Calm:
    return Calm(worker, own)


def test_leases_of_workers_with_nothing_to_do_are_renewed_seldom_and_for_longer(
    calm: Calm,
) -> None:
    assert calm.is_eased
    assert calm.seconds() == pytest.approx(conf.lease * (1 + EASE), abs=0.1)
    assert not calm.is_renewed()
    calm.renewer._next = 0.0  # a lease before it lapses
    assert calm.is_renewed()
    assert calm.is_eased


@pytest.mark.parametrize("has", ["held", "draining"])
def test_a_worker_that_has_something_to_do_has_an_ordinary_lease_again(
    calm: Calm, has: str
) -> None:
    calm.process_table.write(0, **{has: 1})
    assert calm.is_renewed()
    assert not calm.is_eased
    assert calm.seconds() == pytest.approx(conf.lease, abs=0.1)
    calm.process_table.write(0, **{has: 0})
    calm.renewer._next = 0.0  # a third of a lease later
    assert calm.is_renewed()
    assert not calm.is_eased  # not for as long as a lease


def test_what_is_asked_of_workers_with_nothing_to_do_is_learnt_at_once(
    calm: Calm,
) -> None:
    Worker.objects.update(desired="drain")
    calm.renewer.wake()
    calm.renewer.tick()
    assert DESIRES[calm.process_table.entry(0).desired] == "drain"
    assert not calm.is_renewed()


def test_what_a_worker_heard_that_is_asked_is_learnt_at_the_next_look(
    calm: Calm,
) -> None:
    Worker.objects.update(desired="stop")
    calm.process_table.write(0, calls=1)
    assert calm.is_renewed()
    assert DESIRES[calm.process_table.entry(0).desired] == "stop"
    assert not calm.is_renewed()
    calm.process_table.write(0, calls=2)
    assert calm.is_renewed()


def test_that_a_worker_drains_and_no_longer_does_is_told_at_the_next_look(
    calm: Calm,
) -> None:
    for draining, state in ((1, "draining"), (0, "running")):
        calm.process_table.write(0, draining=draining)
        assert calm.is_renewed()
        assert Worker.objects.get(id=calm.id).state == state
        assert not calm.is_renewed()


def test_the_lease_of_a_new_worker_is_renewed_at_once(
    calm: Calm, make_worker: Make
) -> None:
    calm.process_table.write(1, pid=2, worker=make_worker().worker.id, renewable=1)
    assert calm.is_renewed()


def test_a_renewal_that_failed_is_tried_again(calm: Calm, own: OwnConnection) -> None:
    calm.renewer.wake()
    own.run("ALTER TABLE jobqueue_worker RENAME TO gone")
    with pytest.raises(StoreUnavailable):
        calm.renewer.tick()
    own.run("ALTER TABLE gone RENAME TO jobqueue_worker")
    assert calm.is_renewed()


def test_without_notifications_no_lease_is_renewed_for_longer(calm: Calm) -> None:
    calm.process_table.can_listen = False
    assert calm.is_renewed()
    assert not calm.is_eased


def test_a_renewer_with_nothing_to_see_rests_until_the_next_renewal(calm: Calm) -> None:
    assert calm.renewer.tick() > CHECK_EVERY
    calm.process_table.activity(lease_time(), conf.lease)
    assert calm.wakeups.maintenance.wait(0)[0]
    assert calm.is_renewed()
    assert not calm.is_eased
    assert calm.renewer.tick() <= CHECK_EVERY


def test_the_supervisor_is_told_of_what_is_asked_once(calm: Calm) -> None:
    calm.process_table.activity(lease_time(), conf.lease)
    calm.renewer.tick()
    calm.wakeups.supervisor.wait(0)
    Worker.objects.update(desired="drain")
    calm.renewer.wake()
    calm.renewer.tick()
    assert calm.wakeups.supervisor.wait(0)[0]
    calm.renewer.wake()
    calm.renewer.tick()
    assert not calm.wakeups.supervisor.wait(0)[0]


def test_the_supervisor_is_told_that_a_worker_was_given_up(calm: Calm) -> None:
    Worker.objects.update(state="lost")
    calm.renewer.wake()
    calm.renewer.tick()
    assert calm.process_table.entry(0).lost
    assert calm.wakeups.supervisor.wait(0)[0]
