"""A worker process dies with jobs that were claimed and not started: only those that
its table of attempts shows count the crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from uuid import UUID

import pytest

from django_jobqueue.host.child import Child
from django_jobqueue.host.children import Children
from django_jobqueue.host.control import HostControl
from django_jobqueue.host.hangs import NAMED
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.models import Failure, JobType, QueuedJob
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipe
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from tests.execution.test_attempt import attempt_of
from tests.host.lost import held_by
from tests.store.rows import ADD, ONCE, ago, lane, make_many, register
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)

KILLED = "killed by signal 9 (SIGKILL)"


class Host:
    """The children of a supervisor, whose deaths a rescuer in this process hears of."""

    def __init__(self, own: OwnConnection, rescuer: Rescuer) -> None:
        self.own, self.rescuer = own, rescuer
        config, self.table = WorkerConfig(), ProcessTable(1, attempts=NAMED + 1)
        self.control = HostControl(config, self.table, wanted=1, grace=1)
        wakeup = WakeupPipe()
        self.children = Children(
            config,
            self.table,
            UnfinishedJobsDump(None, "here"),
            restarts=self.control.restarts,
            maintenance_wakeup=wakeup,
        )
        wakeup.close()
        self.children.maintenance.recover = rescuer.report  # type: ignore[method-assign]

    def kill(self, worker: int, *running: UUID) -> None:
        """The process of this worker dies while these of its jobs run."""
        self.table.clear(0)
        self.table.attempts(0).clear()
        self.table.write(0, pid=1, worker=worker)
        for id in running:
            attempt = attempt_of(lambda: None)
            attempt.job = attempt.job._replace(id=id)
            self.table.attempts(0).row(1).enter(attempt)
        child, entry = Child(1, -1, 0, 0.0), self.table.entry(0)
        death: ProcessDeath = self.control.ended(
            child, entry, crashed=True, reason=KILLED
        )
        self.children.recover(child, death)
        self.rescuer.tick()


@pytest.fixture
def host(own: OwnConnection, rescuer: Rescuer) -> Host:
    return Host(own, rescuer)


def crashes() -> Counter[UUID]:
    return Counter({job.id: job.crashes for job in (*queued(), *archived())})


@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_each_of_many_poison_jobs_starts_as_often_as_it_may(
    host: Host, own: OwnConnection, ahead: int
) -> None:
    """One at a time, with others that were claimed with it and wait."""
    JobType.objects.filter(name=ADD).update(max_crashes=3)
    poison, starts = make_many(3), Counter[UUID]()
    for _ in range(3 * len(poison)):
        worker = register(own)
        claimed = claim.claim(own, worker, [lane()], 1 + ahead)
        claimed = claimed or claim_quarantined(own, worker, [ADD], None)
        starts[claimed[0].id] += 1
        host.kill(worker, claimed[0].id)
    assert starts == dict.fromkeys(poison, 3)
    assert {job.id: job.status for job in archived()} == dict.fromkeys(poison, "failed")


def test_a_job_that_did_not_run_is_released_and_its_attempt_says_why(
    host: Host, own: OwnConnection, holder: int
) -> None:
    ran, waited = held_by(holder), held_by(holder)
    once, unwanted = held_by(holder, ONCE), held_by(holder, cancel_requested_at=ago(1))
    host.kill(holder, ran)
    assert crashes() == Counter({ran: 1})
    states = {job.id: (job.status, job.attempts) for job in queued()}
    assert states == {ran: ("queued", 0), waited: ("queued", 0)}
    ends = dict(Failure.objects.values_list("job_id", "end"))
    released = {waited: "released", once: "failed", unwanted: "cancelled"}
    assert ends == {ran: "crashed", **released}
    assert Failure.objects.get(job_id=ran).reason == KILLED
    assert Failure.objects.get(job_id=waited).reason == (
        f"{KILLED}; this job did not run then"
    )


@pytest.mark.parametrize(
    "shown", [lambda ids: [], lambda ids: ids[: NAMED + 1]], ids=["none", "too many"]
)
def test_if_nobody_knows_what_ran_all_count(
    host: Host, holder: int, shown: Callable[[list[UUID]], list[UUID]]
) -> None:
    """None ran, so something else of the worker died of one of them; or there are more
    than fit into the report."""
    columns = {"status": "running", "worker_id": holder, "started_at": ago(3)}
    ids = make_many(NAMED + 2, attempts=1, **columns)
    host.kill(holder, *shown(ids))
    assert crashes() == Counter(dict.fromkeys(ids, 1))
    assert not QueuedJob.objects.exclude(status="queued").exists()
