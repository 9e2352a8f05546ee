"""Handlers that hold the interpreter's lock: nobody in their process sees the clock."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Failure, FailureGroup, QueuedJob, Rollup, Worker
from tests.crashes.test_kills import all_archived, ends, is_gone, starts
from tests.sample import jobs
from tests.support.doomed_server import Doomed
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
LONG = ("--lease", "60", "--cancel-grace", "0.5")
TIMEOUT = "django_jobqueue.exceptions.JobTimeout"


def claimed_together(run: Run, *flags: str, **env: str) -> RunWorkers:
    """A worker that claims what is there in one go, and starts it at once."""
    return run("--threads", "3", *LONG, *flags, **env)


@pytest.mark.parametrize(
    ("handler", "how"),
    [
        ("hold_lock", "computing"),
        ("ahold_lock", "asleep"),
        pytest.param(
            "hold_lock", "asleep", marks=pytest.mark.slow("further ways to hang")
        ),
        pytest.param(
            "ahold_lock", "computing", marks=pytest.mark.slow("further ways to hang")
        ),
    ],
)
def test_a_handler_that_holds_the_lock_is_timed_out(
    runworkers: Run, journal: str, handler: str, how: str
) -> None:
    run = runworkers("--threads", "1", *LONG)
    run.started()
    getattr(jobs, handler).enqueue(journal, how)

    eventually(all_archived(1), within=60, what=run.output)
    (job,) = archived()
    assert (job.status, job.attempts, job.crashes) == ("failed", 2, 0)
    assert job.error_class == TIMEOUT
    assert "its timeout of 1 s" in job.error_message
    assert starts(journal)["hold"] == 2
    failures = Failure.objects.order_by("number")
    assert [failure.end for failure in failures] == ["timed_out", "timed_out"]
    assert [failure.worker != "" for failure in failures] == [True, True]
    assert FailureGroup.objects.get().error_class == TIMEOUT
    eventually(lambda: sum(r.failed for r in Rollup.objects.all()) == 1)
    assert sum(row.retried for row in Rollup.objects.all()) == 1
    assert (
        f"Job {job.id} (tests.sample.{handler}) attempt 2 failed for good" in run.output
    )


def test_its_neighbours_are_released_and_charged_with_nothing(
    runworkers: Run, journal: str
) -> None:
    """Also one whose time is over, too: the one that computes held it up."""
    for word in ("in time", "long"):
        verb = jobs.write_in_time if word == "in time" else jobs.write
        verb.enqueue(journal, word.replace(" ", "_"), seconds=0.5)
    jobs.hold_lock.enqueue(journal)
    run = claimed_together(runworkers)

    eventually(all_archived(3), within=60, what=run.output)
    by_type = {job.job_type_id: job for job in archived()}
    held = by_type.pop("tests.sample.hold_lock")
    assert (held.status, held.attempts, held.crashes) == ("failed", 2, 0)
    for job in by_type.values():
        assert (job.status, job.attempts, job.crashes) == ("succeeded", 1, 0)
    assert FailureGroup.objects.get().error_class == TIMEOUT
    ends_of_others = Failure.objects.exclude(job_id=held.id).values_list(
        "end", flat=True
    )
    assert set(ends_of_others) <= {"released"}


def test_a_handler_that_may_compute_on_costs_its_neighbour_nothing(
    runworkers: Run, journal: str
) -> None:
    """It has no timeout; but who waits for the lock has. After the grace the process
    goes, as beside any handler that does not stop: it is the one that counts a
    crash."""
    run = claimed_together(runworkers, "--grace", "1")
    run.started()
    jobs.write_in_time.enqueue(journal, "neighbour", seconds=30)
    eventually(lambda: starts(journal))
    jobs.hold_lock_for_good.enqueue(journal)

    def crashed() -> bool:
        return QueuedJob.objects.filter(crashes=1).exists()

    eventually(crashed, within=60, what=run.output)
    (held,) = QueuedJob.objects.filter(crashes=1)
    assert held.job_type_id == "tests.sample.hold_lock_for_good"
    assert not Failure.objects.filter(
        job_type="tests.sample.write_in_time", end__in=["timed_out", "crashed"]
    ).exists()


def test_at_most_once_jobs_are_not_started_again(runworkers: Run, journal: str) -> None:
    run = claimed_together(runworkers)
    run.started()
    jobs.write_once.enqueue(journal, "neighbour", seconds=60)
    eventually(lambda: starts(journal))
    jobs.hold_lock_once.enqueue(journal)

    eventually(all_archived(2), within=60, what=run.output)
    by_type = {job.job_type_id: job for job in archived()}
    held, other = (
        by_type["tests.sample.hold_lock_once"],
        by_type["tests.sample.write_once"],
    )
    assert (held.status, held.error_class) == ("failed", TIMEOUT)
    assert (other.status, other.crashes) == ("failed", 0)
    assert other.error_message.startswith("outcome unknown: killed, because a job held")
    assert starts(journal) == {"hold": 1, "neighbour": 1}


def test_a_handler_that_blocks_the_event_loop_is_timed_out_and_no_other_one_is(
    runworkers: Run, journal: str
) -> None:
    """Those that wait for the loop run out of their time as well."""
    for word in "ab":
        jobs.awrite_in_time.enqueue(journal, word, seconds=0.2)
    jobs.block_loop.enqueue(journal)
    run = claimed_together(runworkers, "--grace", "0.5")

    eventually(all_archived(3), within=60, what=run.output)
    by_type: dict[str, list[Any]] = {}
    for job in archived():
        by_type.setdefault(job.job_type_id, []).append(job)
    (blocked,) = by_type["tests.sample.block_loop"]
    assert (blocked.status, blocked.attempts) == ("failed", 2)
    assert blocked.error_class == TIMEOUT
    for job in by_type["tests.sample.awrite_in_time"]:
        assert (job.status, job.attempts, job.crashes) == ("succeeded", 1, 0)
    assert ends(journal) == {"a": 1, "b": 1}


def test_a_lease_that_cannot_be_renewed_ends_it_without_the_database(
    doomed: Doomed, journal: str
) -> None:
    """It held the lock before its process could say that it holds a job."""
    run = doomed.runworkers("--threads", "1", "--lease", "3")
    (pid,) = eventually(
        lambda: [
            pid
            for (pid,) in doomed.query(
                "SELECT pid FROM jobqueue_worker WHERE state = 'running'"
            )
        ]
    )
    doomed.query(
        "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES "
        "('tests.sample.hold_lock_for_good', jsonb_build_object('journal', %s::text))",
        journal,
    )
    eventually(lambda: starts(journal))
    doomed.server.stop("immediate")

    eventually(lambda: is_gone(pid), within=30, what=run.output)
    assert "its lease could not be renewed in time; killing it" in run.output
    doomed.server.start_again()


def test_a_job_that_is_cancelled_and_cannot_hear_of_it_is_ended_after_the_grace(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "2", *LONG, "--grace", "1")
    run.started()
    jobs.hold_lock_for_good.enqueue(journal)
    eventually(lambda: starts(journal))
    operations.cancel([job.id for job in queued()], reason="not wanted", by="anna")

    eventually(all_archived(1), within=60, what=run.output)
    (job,) = archived()
    assert (job.status, job.crashes) == ("cancelled", 0)
    assert starts(journal) == {"hold": 1}
    assert not FailureGroup.objects.exists()
    eventually(run.started)


def test_a_stop_cuts_it_off_and_charges_it_with_nothing(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", "--grace", "0.2", "--cancel-grace", "0.2")
    run.started()
    jobs.hold_lock_for_good.enqueue(journal)
    eventually(lambda: starts(journal))
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    (job,) = queued()
    assert (job.status, job.attempts, job.crashes) == ("queued", 0, 0)
    assert not FailureGroup.objects.exists()


def test_a_process_that_was_stopped_and_goes_on_in_time_is_not_taken_for_a_hang(
    runworkers: Run, journal: str
) -> None:
    """Nobody's watchdog looked while the whole group stood still, longer than a timeout
    and the patience after it."""
    operations.override("tests.sample.slow", timeout=timedelta(seconds=2))
    run = runworkers("--threads", "1", *LONG)
    (pid,) = run.started()
    jobs.slow.enqueue(seconds=60.0)
    eventually(lambda: queued(status="running"))
    os.killpg(run.process.pid, signal.SIGSTOP)
    stopped = Worker.objects.get(pid=pid)
    eventually(lambda: has_passed(7.0, stopped), within=30)
    os.killpg(run.process.pid, signal.SIGCONT)

    eventually(all_archived(1), what=run.output)
    (job,) = archived()
    assert (job.status, job.error_class) == ("failed", TIMEOUT)
    assert run.workers() == [pid]
    assert "interpreter's lock" not in run.output


def has_passed(seconds: float, since: Worker) -> bool:
    """Whether so much time has passed on the database's clock."""
    from django.utils import timezone

    return (timezone.now() - since.renewed_at).total_seconds() > seconds
