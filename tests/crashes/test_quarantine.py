"""Jobs that must run alone, beside real processes: none is forked in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.models import JobType, Queue, QueuedJob, Worker
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.store.meanwhile import open_transaction
from tests.store.rows import make, register
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
WRITE = "tests.sample.write"


def in_quarantine(journal: str, **columns: Any) -> QueuedJob:
    """A job that was there when workers died."""
    made = jobs.write.using(queue="q").enqueue(journal, "quarantined", seconds=0)
    QueuedJob.objects.filter(id=made.id).update(quarantined=True, crashes=2, **columns)
    return QueuedJob.objects.get(id=made.id)


def hold_back(how: str, own: OwnConnection) -> Callable[[], Any]:
    """Keep jobs of this type from running; returns what ends that."""
    match how:
        case "pause of the type":
            operations.pause([WRITE])
            return lambda: operations.resume([WRITE])
        case "pause of the queue":
            Queue.objects.create(name="q", paused=True)
            return lambda: Queue.objects.update(paused=False)
        case "limit of none":
            JobType.objects.filter(name=WRITE).update(concurrency_override=0)
            return lambda: JobType.objects.update(concurrency_override=None)
    JobType.objects.filter(name=WRITE).update(concurrency_override=1)
    elsewhere = register(own, lease=600.0)
    other = make(WRITE, status="running", worker_id=elsewhere)
    return QueuedJob.objects.filter(id=other).delete


HELD_BACK = [
    "pause of the type",
    "pause of the queue",
    "limit of none",
    "limit used up",
]


@pytest.mark.parametrize("how", HELD_BACK)
def test_no_process_is_started_for_a_job_that_may_not_run_and_one_when_it_may(
    runworkers: Run, journal: str, own: OwnConnection, how: str
) -> None:
    go_on = hold_back(how, own)
    in_quarantine(journal)
    run = runworkers("--threads", "1")
    run.started()
    for number in range(20):  # as long as all this takes
        jobs.add.enqueue(number)
        eventually(lambda n=number: len(archived()) == n + 1)
    assert Worker.objects.exclude(host="host").count() == 1, run.output

    go_on()
    eventually(lambda: archived(job_type=WRITE))
    assert jobs.notes(journal)[0] == ["start", "quarantined"]


@pytest.mark.parametrize("how", HELD_BACK)
def test_a_drain_ends_beside_a_job_that_may_not_run(
    runworkers: Run, journal: str, own: OwnConnection, how: str
) -> None:
    hold_back(how, own)
    held = in_quarantine(journal)
    jobs.add.enqueue(1)
    run = runworkers("--drain", "--threads", "1")

    assert run.wait() == 0
    assert [job.job_type_id for job in archived()] == ["tests.sample.add"]
    assert [job.id for job in queued(status="queued")] == [held.id]


def test_a_drain_runs_a_job_that_may_run(runworkers: Run, journal: str) -> None:
    in_quarantine(journal)
    jobs.add.enqueue(1)
    run = runworkers("--drain", "--threads", "1")

    assert run.wait() == 0
    assert not queued(), run.output


def test_processes_that_find_their_job_locked_are_started_more_and_more_seldom(
    runworkers: Run, journal: str, other: OwnConnection
) -> None:
    """A question cannot see that a row is locked; only the claim passes it by."""
    job = in_quarantine(journal)
    with open_transaction(other) as transaction:
        transaction.run(
            "SELECT FROM jobqueue_queuedjob WHERE id = %(id)s FOR UPDATE",
            {"id": job.id},
        )
        run = runworkers("--threads", "1")
        eventually(lambda: Worker.objects.filter(end="ended").count() == 4, within=60)
        rows = Worker.objects.filter(end="ended").order_by("id")
        starts = [row.started_at for row in rows]
        rests = [b - a for a, b in zip(starts, starts[1:], strict=False)]
        assert rests[-1].total_seconds() > 2  # 0.5 s, 1 s and 2 s after an end
    eventually(lambda: archived(id=job.id), within=60, what=run.output)


def test_a_worker_of_a_quarantined_job_is_not_followed_by_another_in_vain(
    runworkers: Run, journal: str
) -> None:
    for _ in range(3):
        in_quarantine(journal)
    run = runworkers("--threads", "1")
    eventually(lambda: len(archived()) == 3, what=run.output)
    eventually(lambda: Worker.objects.filter(end="ended").exists())
    for number in range(20):
        jobs.add.enqueue(number)
        eventually(lambda n=number: len(archived()) == n + 4)
    assert Worker.objects.filter(end="ended").count() == 1, run.output
