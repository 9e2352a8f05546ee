"""Jobs that must run alone, beside real processes: none is forked in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import JobType, Queue, QueuedJob, Worker
from django_jobqueue.store.connection import OwnConnection
from tests.crashes.seen import QUARANTINE
from tests.sample import jobs
from tests.store.rows import make, register
from tests.support.rows import archived, queued
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
CONSTANTS = {**BRISK, **QUARANTINE}


def in_quarantine(handler: Handler[..., Any], journal: str, queue: str = "") -> Any:
    """A job that was there when workers died."""
    made = handler.using(queue=queue or "default").enqueue(journal, handler.name)
    QueuedJob.objects.filter(id=made.id).update(quarantined=True, crashes=2)
    return made.id


def hold_back_all(own: OwnConnection, journal: str) -> dict[Any, Callable[[], Any]]:
    """Jobs that must run alone and may not run, for each reason that there is; by each,
    what ends that."""
    operations.pause([jobs.write.name])
    Queue.objects.create(name="paused", paused=True)
    limit = JobType.objects.filter
    limit(name=jobs.write_once.name).update(concurrency_override=0)
    limit(name=jobs.write_slowly.name).update(concurrency_override=1)
    elsewhere = register(own, lease=600.0)
    other = make(jobs.write_slowly.name, status="running", worker_id=elsewhere)
    return {
        in_quarantine(jobs.write, journal): lambda: operations.resume(
            [jobs.write.name]
        ),
        in_quarantine(jobs.awrite, journal, "paused"): lambda: Queue.objects.update(
            paused=False
        ),
        in_quarantine(jobs.write_once, journal): lambda: limit(
            name=jobs.write_once.name
        ).update(concurrency_override=None),
        in_quarantine(jobs.write_slowly, journal): QueuedJob.objects.filter(
            id=other
        ).delete,
    }


def run_others(count: int) -> None:
    """As long as this takes, somebody might fork."""
    for number in range(count):
        job = jobs.add.enqueue(number)
        eventually(lambda id=job.id: archived(id=id))


def ended() -> int:
    """How many workers have ended: one for each job that must run alone."""
    return Worker.objects.filter(end="ended").count()


def test_no_process_is_started_for_a_job_that_may_not_run_and_one_when_it_may(
    runworkers: Run, journal: str, own: OwnConnection
) -> None:
    held_back = hold_back_all(own, journal)
    run = runworkers("--threads", "1", constants=CONSTANTS)
    run.started()
    run_others(20)
    assert Worker.objects.exclude(host="host").count() == 1, run.output
    assert {job.id for job in queued(status="queued")} == held_back.keys()

    for number, (id, go_on) in enumerate(held_back.items(), start=1):
        go_on()
        eventually(lambda job=id: archived(id=job), what=lambda: run.output)
        eventually(lambda n=number: ended() == n)
    assert {job.status for job in archived()} == {"succeeded"}
    run_others(10)
    assert ended() == len(held_back), run.output  # nobody followed in vain
