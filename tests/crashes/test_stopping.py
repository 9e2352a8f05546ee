"""Signals to real processes: what finishes, what is released, what is written down."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Worker
from tests.crashes.test_kills import all_archived, ends, is_gone, starts
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]


def ask(worker: Worker, what: str, state: str) -> None:
    """Ask it, and wait until it is in this state."""
    operations.ask_workers([worker.id], what)
    eventually(lambda: Worker.objects.get(id=worker.id).state == state)


def test_the_first_signal_lets_running_jobs_finish(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1")
    run.started()
    jobs.write.enqueue(journal, "running", seconds=0.5)
    eventually(lambda: starts(journal))
    jobs.write.enqueue(journal, "waiting")
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    assert ends(journal) == {"running": 1}
    assert [job.status for job in archived()] == ["succeeded"]
    (waiting,) = queued()
    assert (waiting.status, waiting.attempts) == ("queued", 0)
    assert "stopping. No job is claimed any more" in run.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_is_left_to_the_supervisor(
    runworkers: Run, journal: str, number: int
) -> None:
    run = runworkers("--threads", "1", "--processes", "2")
    pids = run.started(2)
    jobs.write.enqueue(journal, "a", seconds=0.5)
    eventually(lambda: starts(journal))
    os.killpg(run.process.pid, number)

    assert run.wait() == 0
    assert ends(journal) == {"a": 1}
    assert all(is_gone(pid) for pid in pids)


def test_after_the_grace_jobs_are_cancelled_then_released(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "2", "--grace", "0.2", "--cancel-grace", "0.2")
    run.started()
    jobs.write.enqueue(journal, "stubborn", seconds=60)  # asleep outside of Python
    jobs.awrite.enqueue(journal, "obedient", seconds=60)
    eventually(lambda: len(starts(journal)) == 2)
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    left = queued()
    assert {job.job_type_id for job in left} == {
        "tests.sample.write",
        "tests.sample.awrite",
    }
    for job in left:
        assert (job.status, job.attempts, job.crashes) == ("queued", 0, 0)
        assert job.worker_id is None


def test_an_at_most_once_job_that_is_cut_off_is_not_put_back(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", "--grace", "0.1", "--cancel-grace", "0.1")
    run.started()
    jobs.write_once.enqueue(journal, "a", seconds=60)
    eventually(lambda: starts(journal))
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    assert queued() == []
    (job,) = archived()
    assert (job.status, job.crashes) == ("failed", 0)
    assert job.error_message.startswith("outcome unknown: ")


def test_the_second_signal_releases_at_once_and_writes_a_dump(
    runworkers: Run, journal: str, tmp_path: Path
) -> None:
    run = runworkers("--threads", "2", "--dump-dir", str(tmp_path))
    run.started()
    made = [jobs.write.enqueue(journal, word, seconds=60) for word in "ab"]
    eventually(lambda: len(starts(journal)) == 2)
    run.signal(signal.SIGINT)
    eventually(lambda: "A second signal stops at once" in run.output)
    run.signal(signal.SIGINT)

    assert run.wait(10) == 1
    assert [job.status for job in queued()] == ["queued", "queued"]
    assert [job.attempts for job in queued()] == [0, 0]
    (dump,) = tmp_path.glob("jobqueue-unfinished-*.json")
    listed = {job["id"]: job for job in json.loads(dump.read_text())["jobs"]}
    assert set(listed) == {str(job.id) for job in made}
    for job in listed.values():
        assert job["job_type"] == "tests.sample.write"
        assert job["became"] == "queued"
        assert job["started"]
        assert job["data"]["seconds"] == 60
    assert str(dump) in run.output
    assert list(tmp_path.glob("*.part")) == []


def test_without_a_folder_the_log_lists_what_a_stop_cut_off(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--grace", "0.1", "--cancel-grace", "0.1")
    run.started()
    job = jobs.write.enqueue(journal, "stubborn", seconds=60)
    eventually(lambda: starts(journal))
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    assert f"1 unfinished jobs: {job.id} (tests.sample.write, ran " in run.output


@pytest.mark.parametrize("folder", ["/dev/null", "/proc/self", "/not/there"])
def test_deploys_with_a_folder_that_cannot_be_written_to_are_no_crashes(
    runworkers: Run, journal: str, folder: str
) -> None:
    """As where the container is read-only: MAX_CRASHES is 3."""
    flags = ("--grace", "0.1", "--cancel-grace", "0.1", "--dump-dir", folder)
    jobs.write.enqueue(journal, "innocent", seconds=60)
    for deploys in range(1, 4):
        run = runworkers(*flags)
        eventually(lambda done=deploys: starts(journal)["innocent"] == done)
        run.signal(signal.SIGTERM)
        assert run.wait() == 0, run.output
        assert "jobqueue.W008" in run.output
        assert "1 unfinished jobs: " in run.output
        assert "Traceback" not in run.output
    (job,) = queued()
    assert (job.status, job.attempts, job.crashes) == ("queued", 0, 0)


def test_drain_ends_when_nothing_can_be_run_now(runworkers: Run, journal: str) -> None:
    from datetime import timedelta

    jobs.write.enqueue(journal, "now")
    jobs.write.using(run_after=timedelta(hours=1)).enqueue(journal, "later")
    run = runworkers("--drain", "--processes", "2")

    assert run.wait() == 0
    assert starts(journal) == {"now": 1}
    assert len(queued()) == 1


def test_drain_runs_all_jobs_of_a_limited_type(runworkers: Run, journal: str) -> None:
    """Each end makes room for others, also the last one before all are at rest."""
    jobs.write_limited.enqueue_many(
        {"journal": journal, "word": str(number)} for number in range(200)
    )
    for _ in range(2):
        run = runworkers("--drain", "--processes", "2")
        assert run.wait() == 0
        assert len(archived()) == 200


def test_drain_runs_jobs_that_must_run_alone(runworkers: Run, journal: str) -> None:
    jobs.die.enqueue(journal)
    run = runworkers("--drain", "--threads", "1")

    assert run.wait() == 0
    assert starts(journal) == {"die": 3}
    assert archived()[0].status == "failed"


def test_a_hanging_handler_is_timed_out_and_its_slot_comes_back(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", "--cancel-grace", "0.2")
    run.started()
    jobs.hang.enqueue(journal)
    eventually(lambda: starts(journal))
    jobs.write.enqueue(journal, "behind")

    eventually(all_archived(2))
    by_type = {job.job_type_id: job for job in archived()}
    unresponsive = by_type["tests.sample.hang"]
    assert (unresponsive.status, unresponsive.attempts, unresponsive.crashes) == (
        "failed",
        2,
        0,
    )
    assert unresponsive.error_class == "django_jobqueue.exceptions.JobTimeout"
    assert "did not stop when told" in unresponsive.error_message
    assert starts(journal)["hang"] == 2
    assert by_type["tests.sample.write"].status == "succeeded"


def test_a_sibling_of_a_hanging_handler_finishes(runworkers: Run, journal: str) -> None:
    run = runworkers("--threads", "2", "--cancel-grace", "0.2")
    run.started()
    jobs.write.enqueue(journal, "sibling", seconds=2.0)
    jobs.hang.enqueue(journal)

    eventually(all_archived(2))
    assert starts(journal)["sibling"] == 1
    assert archived(job_type="tests.sample.write")[0].status == "succeeded"


def test_workers_obey_what_operators_ask(runworkers: Run, journal: str) -> None:
    run = runworkers("--threads", "1", "--lease", "2")
    (pid,) = run.started()
    row = Worker.objects.get(pid=pid, state="running")

    for _ in range(5):  # it is the same process that goes on
        ask(row, "drain", "draining")
        ask(row, "resume", "running")
    ask(row, "drain", "draining")
    jobs.write.enqueue(journal, "a")
    ask(row, "resume", "running")
    eventually(all_archived(1))

    operations.ask_workers([row.id], "restart")
    (successor,) = eventually(lambda: [p for p in run.workers() if p != pid])
    eventually(lambda: is_gone(pid))

    row = Worker.objects.get(pid=successor, state="running")
    operations.ask_workers([row.id], "stop")
    assert run.wait() == 0  # it was the last one


def test_a_worker_that_operators_drained_ends_when_it_is_told_to(
    runworkers: Run,
) -> None:
    run = runworkers("--processes", "2", "--threads", "1")
    (first, second) = sorted(run.started(2))
    row = Worker.objects.get(pid=first, state="running")
    ask(row, "drain", "draining")
    operations.ask_workers([row.id], "stop")
    eventually(lambda: is_gone(first))
    assert run.workers() == [second]
    row = Worker.objects.get(pid=second, state="running")
    ask(row, "drain", "draining")
    assert run.stop() == 0
