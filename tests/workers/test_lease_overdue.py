"""A worker claims nothing while its lease is overdue, as after an outage: its
supervisor would kill it for the first job that it holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.host.control import HostControl
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.models import QueuedJob
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import (
    FENCE_AT,
    IDLE_EXTENSION,
    LeaseOverdue,
    ProcessTable,
)
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)


class Host:
    """A worker, and the renewer of its lease."""

    def __init__(self, make_worker: Make, own: OwnConnection, **config: bool) -> None:
        self.wakeups = WakeupPipes()
        self.table = ProcessTable(1, self.wakeups)
        self.table.can_listen = True
        self.worker: HandDriven = make_worker(
            ensure_leased=partial(self.table.ensure_leased, 0, conf.lease), **config
        )
        self.table.write(0, pid=1, worker=self.worker.worker.id, renewable=1)
        self.renewer = Renewer(self.table, own)
        self.renewer.tick()
        self.rings()

    def outlast(self, leases: float) -> None:
        """For so long the database cannot be reached."""
        self.table.renewed_at -= leases * conf.lease
        self.renewer.next_at = 0.0

    def rings(self) -> bool:
        """Whether maintenance was woken since one last asked."""
        return self.wakeups.maintenance.wait(0)[0]

    def is_killed(self) -> bool:
        """Whether the supervisor would kill it for what it holds."""
        self.table.write(0, held=self.worker.held)
        entry = self.table.entry(0)
        return entry.is_cut_off(self.table.renewed_at, lease_time(), conf.lease)


def alone() -> None:
    jobs.add.enqueue(1)
    QueuedJob.objects.update(quarantined=True)


EACH_WAY: dict[str, Callable[[], object]] = {
    "plain": lambda: jobs.add.enqueue(1),
    "async": lambda: jobs.aadd.enqueue(1),
    "limited": lambda: jobs.write_limited.enqueue("/dev/null"),
    "in turns": lambda: jobs.count_keyed.enqueue("a"),
    "by key": lambda: jobs.write_keyed.enqueue("/dev/null", "a"),
    "rated": lambda: jobs.write_weighed.enqueue(),
    "alone": alone,
}


@pytest.mark.parametrize("way", EACH_WAY)
def test_after_an_outage_the_renewal_comes_before_the_first_claim(
    make_worker: Make, own: OwnConnection, way: str
) -> None:
    host = Host(make_worker, own, quarantined=way == "alone")
    host.outlast(2)
    EACH_WAY[way]()
    for _ in range(3):
        assert host.worker.claim(told=True) < 1.0
        assert not host.is_killed()
        assert host.rings()
        assert not host.worker.worker.is_idle  # else a drain would end here
    assert [job.status for job in queued()] == ["queued"]
    host.renewer.tick()
    host.worker.turn()  # nobody tells it again
    assert [job.status for job in archived()] == ["succeeded"]
    assert not host.is_killed()
    assert not host.rings()


def test_for_the_last_tenth_of_a_lease_before_the_fence_nothing_is_claimed(
    make_worker: Make, own: OwnConnection
) -> None:
    """The renewal is tried again only so often, and the fence does not wait for it."""
    host = Host(make_worker, own)
    ensure = partial(host.table.ensure_leased, 0, conf.lease)
    host.outlast(FENCE_AT - 0.2)
    ensure()
    host.outlast(0.1)
    with pytest.raises(LeaseOverdue):
        ensure()
    host.table.write(0, extended=1)  # it was idle
    ensure()
    host.outlast(IDLE_EXTENSION)
    with pytest.raises(LeaseOverdue):
        ensure()
    host.renewer.tick()
    ensure()
    host.table.write(0, lost=1)
    with pytest.raises(LeaseOverdue):
        ensure()


def test_a_worker_that_has_just_registered_may_claim() -> None:
    table = ProcessTable(1)
    HostControl(WorkerConfig(), table, wanted=1, grace=1)
    table.renewed_at -= 2 * conf.lease
    table.write(0, registered=int(lease_time() * 1_000))
    table.ensure_leased(0, conf.lease)
