"""Whole lives of jobs, told by a worker that is driven by hand."""

from __future__ import annotations

import threading

from django_jobqueue import get_job, replay
from django_jobqueue.models import Failure, FailureGroup, FailureRollup, Report
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.waiting import eventually


def test_a_job_is_enqueued_claimed_run_and_archived(worker: HandDriven) -> None:
    made = jobs.add.enqueue(2, b=3)
    assert [j.status for j in queued()] == ["queued"]

    worker.claim()
    assert [j.status for j in queued()] == ["running"]
    worker.run()
    worker.finish()

    assert queued() == []
    (job,) = archived()
    assert (job.id, job.status, job.result, job.attempts) == (
        made.id,
        "succeeded",
        5,
        1,
    )


def test_a_failing_job_is_retried_then_archived_then_replayed(
    worker: HandDriven,
) -> None:
    made = jobs.fail.enqueue(message="no such order 7")
    worker.work()

    (job,) = archived()
    assert (job.status, job.attempts, job.error_class) == ("failed", 3, "ValueError")

    again = replay(made.id, by="anna")
    assert again.replay_of == made.id
    worker.work()
    assert [j.status for j in archived()] == ["failed", "failed"]


def test_a_handler_that_asks_to_be_retried_has_not_failed(worker: HandDriven) -> None:
    made = jobs.say.enqueue(word="retry")
    worker.work()
    (job,) = queued()
    assert (job.id, job.status, job.attempts) == (made.id, "queued", 1)

    (attempt,) = Failure.objects.filter(job_id=made.id)
    assert (attempt.number, attempt.end) == (1, "failed")
    assert attempt.error_class.endswith("Retry")
    assert attempt.error_message == "again"
    assert attempt.fingerprint is None
    assert not FailureGroup.objects.exists()
    worker.worker.completer.write_counters()
    assert not FailureRollup.objects.exists()


def test_a_handler_that_asked_too_often_has_failed(worker: HandDriven) -> None:
    jobs.say.using(max_attempts=1).enqueue(word="retry")
    worker.work()
    (job,) = archived(job_type=jobs.say.name)
    assert (job.status, job.error_message) == ("failed", "again")
    (group,) = FailureGroup.objects.all()
    assert job.fingerprint == group.fingerprint


def test_how_far_a_running_job_is_can_be_seen(worker: HandDriven) -> None:
    gate = jobs.gates["story"] = threading.Event()
    worker.worker.start()
    try:
        made = jobs.tell_atomically.enqueue(gate="story")
        (report,) = eventually(lambda: Report.objects.filter(job_id=made.id))
        assert (report.note, get_job(made.id).status) == ("inside", "running")
        gate.set()
        eventually(lambda: get_job(made.id).is_over)
        report.refresh_from_db()
        assert report.note == "at the end"
    finally:
        gate.set()
        worker.worker.drain()
        worker.worker.stop(20)
