"""Whole lives of jobs, told by a worker that is driven by hand."""

from __future__ import annotations

from django_jobqueue import replay
from tests.conftest import HandDriven, archived, queued
from tests.sample import jobs


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
