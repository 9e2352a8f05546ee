"""Handlers that hold the interpreter's lock: nobody in their process sees the clock."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Failure, FailureGroup, QueuedJob
from tests.crashes.seen import all_archived, ends, starts
from tests.sample import jobs
from tests.support.rows import archived, counted, queued
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
LONG = ("--lease", "60", "--cancel-grace", "0.1", "--grace", "0.2")
TIMEOUT = "django_jobqueue.exceptions.JobTimeout"
SOON = 0.3  # seconds, the timeout of those that hang
# The supervisor is soon sure that a process hangs.
IMPATIENT = {
    **BRISK,
    "host.hangs.HOLDS": 0.02,
    "host.hangs.MARGIN": 0.8,
    "host.hangs.SILENT": 0.1,
    "processes.shutdown.WORKER_QUITS": 0.2,
}


@pytest.mark.parametrize(
    ("handler", "how"),
    some_slow(
        [
            ("hold_lock", "computing"),
            ("hold_lock", "asleep"),
            ("ahold_lock", "computing"),
            ("ahold_lock", "asleep"),
        ],
        [("ahold_lock", "asleep")],
        "further ways to hang",
    ),
)
def test_a_handler_that_holds_the_lock_is_timed_out(
    runworkers: Run, journal: str, handler: str, how: str
) -> None:
    run = runworkers("--threads", "1", *LONG, constants=IMPATIENT)
    run.started()
    getattr(jobs, handler).using(timeout=SOON).enqueue(journal, how)

    eventually(all_archived(1), within=60, what=lambda: run.output)
    (job,) = archived()
    assert (job.status, job.attempts, job.crashes) == ("failed", 2, 0)
    assert job.error_class == TIMEOUT
    assert "its timeout of 0.3 s" in job.error_message
    assert starts(journal)["hold"] == 2
    failures = Failure.objects.order_by("number")
    assert [failure.end for failure in failures] == ["timed_out", "timed_out"]
    assert [failure.worker != "" for failure in failures] == [True, True]
    assert FailureGroup.objects.get().error_class == TIMEOUT
    eventually(lambda: counted("failed") == 1)
    assert counted("retried") == 1
    assert (
        f"Job {job.id} (tests.sample.{handler}) attempt 2 failed for good" in run.output
    )


def test_its_neighbours_are_released_and_charged_with_nothing(
    runworkers: Run, journal: str
) -> None:
    """Also one whose time is over, too: the one that computes held it up. Jobs that may
    run at most once are not started again."""
    run = runworkers("--threads", "4", *LONG, constants=IMPATIENT)
    run.started()
    jobs.linger.enqueue(journal, "long")
    jobs.linger_in_time.enqueue(journal, "in_time")
    jobs.write_once.enqueue(journal, "once", seconds=60)
    eventually(lambda: len(starts(journal)) == 3)
    jobs.hold_lock_once.using(timeout=SOON).enqueue(journal)

    eventually(all_archived(4), within=60, what=lambda: run.output)
    by_type = {job.job_type_id: job for job in archived()}
    held = by_type.pop("tests.sample.hold_lock_once")
    assert (held.status, held.error_class, held.crashes) == ("failed", TIMEOUT, 0)
    once = by_type.pop("tests.sample.write_once")
    assert (once.status, once.crashes) == ("failed", 0)
    assert once.error_message.startswith("outcome unknown: killed, because a job held")
    for job in by_type.values():
        assert (job.status, job.attempts, job.crashes) == ("succeeded", 1, 0)
    assert starts(journal) == {"hold": 1, "once": 1, "long": 2, "in_time": 2}
    others = Failure.objects.filter(job_id__in=[job.id for job in by_type.values()])
    assert set(others.values_list("end", flat=True)) <= {"released"}


def test_a_handler_that_may_compute_on_costs_its_neighbour_nothing(
    runworkers: Run, journal: str
) -> None:
    """It has no timeout; but who waits for the lock has. After the grace the process
    goes, as beside any handler that does not stop: it is the one that counts a
    crash."""
    run = runworkers("--threads", "3", *LONG, constants=IMPATIENT)
    run.started()
    jobs.linger_in_time.enqueue(journal, "neighbour")
    eventually(lambda: starts(journal))
    jobs.hold_lock_for_good.enqueue(journal)

    eventually(
        lambda: QueuedJob.objects.filter(crashes=1), within=60, what=lambda: run.output
    )
    (held,) = QueuedJob.objects.filter(crashes=1)
    assert held.job_type_id == "tests.sample.hold_lock_for_good"
    assert not Failure.objects.filter(
        job_type="tests.sample.linger_in_time", end__in=["timed_out", "crashed"]
    ).exists()


def test_a_handler_that_blocks_the_event_loop_is_timed_out_and_no_other_one_is(
    runworkers: Run, journal: str
) -> None:
    """Those that wait for the loop run out of their time as well."""
    for word in "ab":
        jobs.awrite_in_time.enqueue(journal, word, seconds=0.1)
    jobs.block_loop.enqueue(journal)
    run = runworkers("--threads", "1", *LONG, constants=BRISK)

    eventually(all_archived(3), within=60, what=lambda: run.output)
    by_type: dict[str, list[Any]] = {}
    for job in archived():
        by_type.setdefault(job.job_type_id, []).append(job)
    (blocked,) = by_type["tests.sample.block_loop"]
    assert (blocked.status, blocked.attempts) == ("failed", 2)
    assert blocked.error_class == TIMEOUT
    for job in by_type["tests.sample.awrite_in_time"]:
        assert (job.status, job.attempts, job.crashes) == ("succeeded", 1, 0)
    assert ends(journal) == {"a": 1, "b": 1}


def test_a_job_that_cannot_hear_of_a_cancel_or_a_stop_is_ended_after_the_grace(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "2", *LONG, constants=IMPATIENT)
    run.started()
    jobs.hold_lock_for_good.enqueue(journal)
    eventually(lambda: starts(journal))
    operations.cancel([job.id for job in queued()], reason="not wanted", by="anna")

    eventually(all_archived(1), within=60, what=lambda: run.output)
    (job,) = archived()
    assert (job.status, job.crashes) == ("cancelled", 0)
    assert starts(journal) == {"hold": 1}

    run.started()
    jobs.hold_lock_for_good.enqueue(journal)
    eventually(lambda: starts(journal) == {"hold": 2})
    run.signal(signal.SIGTERM)  # a stop charges it with nothing, either
    assert run.wait() == 0
    (job,) = queued()
    assert (job.status, job.attempts, job.crashes) == ("queued", 0, 0)
    assert not FailureGroup.objects.exists()
