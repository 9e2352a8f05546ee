"""A host that was asked to stop and is killed before its jobs have ended, as by
``docker stop`` after its ten seconds: its jobs count no crash, whoever notices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from django_jobqueue import operations
from django_jobqueue.host.maintenance.host_maintenance import find_dead
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.models import Failure, Worker
from django_jobqueue.processes import identity
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.testing import drain
from tests.host.lost import held_by
from tests.store.rows import ONCE, ago, register
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)


def lapses(own: OwnConnection, rescuer: Rescuer) -> None:
    Worker.objects.update(lease_until=ago(1))
    rescuer.tick()


def starts_again(own: OwnConnection, rescuer: Rescuer) -> None:
    """Its successor knows the dead process."""
    mine = identity.identity(1).rpartition("/")[0]
    Worker.objects.update(host=identity.host(), identity=f"{mine}/0")
    for death in find_dead(own):
        rescuer.report(death)
    rescuer.tick()


def is_released(own: OwnConnection, rescuer: Rescuer) -> None:
    Worker.objects.update(lease_until=ago(1))
    operations.release([job.id for job in queued()], by="anna")


def is_drained(own: OwnConnection, rescuer: Rescuer) -> None:
    Worker.objects.update(lease_until=ago(1))
    drain(queue="none")


@pytest.mark.parametrize("notice", [lapses, starts_again, is_released, is_drained])
@pytest.mark.parametrize("state", ["running", "draining"])
def test_only_what_was_not_asked_to_stop_has_crashed(
    own: OwnConnection,
    rescuer: Rescuer,
    notice: Callable[[OwnConnection, Rescuer], None],
    state: str,
) -> None:
    """Three deploys archived an innocent job."""
    id, is_crash = held_by(worker := register(own), crashes=1), state == "running"
    other = held_by(register(own))  # of a host that was not stopping
    once = held_by(worker, ONCE)
    Worker.objects.filter(id=worker).update(state=state)
    notice(own, rescuer)
    crashes = {job.id: (job.status, job.crashes) for job in queued()}
    assert crashes == {id: ("queued", 1 + is_crash), other: ("queued", 1)}
    assert [(job.id, job.status) for job in archived()] == [(once, "failed")]
    assert Failure.objects.get(job_id=id).end == ("crashed" if is_crash else "released")
