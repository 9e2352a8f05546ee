"""Signals to real processes: what finishes, what is released, what is written down."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from django_jobqueue.models import Failure, Worker
from tests.crashes.seen import QUARANTINE, all_archived, ends, is_gone, starts
from tests.sample import jobs
from tests.sample.programs import programs, use_program
from tests.support.rows import archived, queued
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
QUICK = {**BRISK, "processes.shutdown.WORKER_QUITS": 0.2}
AT_ONCE = ("--grace", "0.1", "--cancel-grace", "0.1")


def test_the_first_signal_lets_running_jobs_finish(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", constants=BRISK)
    run.started()
    jobs.await_leave.enqueue(journal, "running")
    eventually(lambda: starts(journal))
    jobs.write.enqueue(journal, "waiting")
    run.signal(signal.SIGTERM)
    eventually(lambda: "stopping. No more jobs are claimed" in run.output)
    eventually(lambda: Worker.objects.get().state == "draining")  # it was told, too
    jobs.give_leave(journal, "running")

    assert run.wait() == 0
    assert ends(journal) == {"running": 1}
    assert [job.status for job in archived()] == ["succeeded"]
    (waiting,) = queued()
    assert (waiting.status, waiting.attempts) == ("queued", 0)


def test_a_job_that_is_being_claimed_when_the_signal_arrives_is_not_cut_off(
    runworkers: Run, journal: str
) -> None:
    """The claim is committed, but the worker does not hold the job yet."""
    run = runworkers("--threads", "1", SAMPLE_SLOW_CLAIMS="0.3")
    run.started()
    jobs.write_once.enqueue(journal)
    eventually(lambda: queued(status="running"))
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    assert not Failure.objects.exists()
    left = [(job.status, job.attempts) for job in queued()]
    assert left == [("queued", 0)] * (1 - starts(journal)["ran"])
    assert ends(journal) == starts(journal)


@pytest.mark.parametrize(
    "number",
    some_slow(
        [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        [signal.SIGINT],
        "further signals",
    ),
)
def test_a_signal_to_the_whole_group_is_left_to_the_supervisor(
    runworkers: Run, journal: str, number: int
) -> None:
    """As Ctrl-C in a terminal does: jobs have their grace, and so have the programs
    that they started."""
    run = runworkers("--threads", "2", "--processes", "2")
    pids = run.started(2)
    jobs.await_leave.enqueue(journal, "a")
    program = use_program.enqueue(journal, 60)
    eventually(lambda: starts(journal)["a"] and programs(journal))
    os.killpg(run.process.pid, number)
    eventually(lambda: "stopping" in run.output)
    os.kill(programs(journal)[0], signal.SIGUSR1)  # nothing else has ended it
    jobs.give_leave(journal, "a")

    assert run.wait() == 0
    assert ends(journal) == {"a": 1}
    assert archived(id=program.id)[0].result == -signal.SIGUSR1
    assert all(is_gone(pid) for pid in pids)


def test_after_the_grace_jobs_are_cancelled_then_released(
    runworkers: Run, journal: str
) -> None:
    """And one that may run at most once is not put back; the log lists the others, also
    where the container is read-only."""
    run = runworkers("--threads", "2", *AT_ONCE, "--dump-dir", "/dev/null")
    run.started()
    jobs.write.enqueue(journal, "stubborn", seconds=60)  # asleep outside of Python
    jobs.awrite.enqueue(journal, "obedient", seconds=60)
    jobs.write_once.enqueue(journal, "once", seconds=60)
    eventually(lambda: len(starts(journal)) == 3)
    run.signal(signal.SIGTERM)

    assert run.wait() == 0
    assert "jobqueue.W008" in run.output
    assert "2 unfinished jobs: " in run.output
    assert "Traceback" not in run.output
    left = {job.job_type_id: job for job in queued()}
    assert left.keys() == {"tests.sample.write", "tests.sample.awrite"}
    for job in left.values():
        assert (job.status, job.attempts, job.crashes) == ("queued", 0, 0)
        assert job.worker_id is None
    (once,) = archived()
    assert (once.status, once.crashes) == ("failed", 0)
    assert once.error_message.startswith("outcome unknown: ")
    stubborn = left["tests.sample.write"]
    assert f"{stubborn.id} (tests.sample.write, ran " in run.output


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


def test_drain_ends_when_nothing_can_be_run_now(runworkers: Run, journal: str) -> None:
    """Each end of a job makes room for others of a limited type, also the last one
    before all are idle; and what kills its worker is run alone."""
    jobs.write.using(run_after=timedelta(hours=1)).enqueue(journal, "later")
    jobs.die.enqueue(journal)
    words = [str(number) for number in range(40)]
    jobs.write_limited.enqueue_many({"journal": journal, "word": n} for n in words)
    constants = {**BRISK, **QUARANTINE}
    run = runworkers("--drain", "--processes", "2", constants=constants)

    assert run.wait() == 0
    assert [job.data["word"] for job in queued()] == ["later"]
    assert starts(journal).keys() == {*words, "die"}
    assert starts(journal)["die"] == 3
    failed = archived(status="failed")
    assert [job.job_type_id for job in failed] == ["tests.sample.die"]
    assert len(archived(status="succeeded")) == len(words)


def test_a_hanging_handler_is_timed_out_and_its_neighbours_finish(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "2", "--cancel-grace", "0.1", constants=QUICK)
    run.started()
    jobs.await_leave.enqueue(journal, "sibling")
    jobs.hang.using(timeout=0.3).enqueue(journal)
    eventually(lambda: len(starts(journal)) == 2)
    jobs.write.enqueue(journal, "behind")
    eventually(lambda: ends(journal)["behind"])
    jobs.give_leave(journal, "sibling")

    eventually(all_archived(3))
    by_type = {job.job_type_id: job for job in archived()}
    hung = by_type["tests.sample.hang"]
    assert (hung.status, hung.attempts, hung.crashes) == ("failed", 2, 0)
    assert hung.error_class == "django_jobqueue.exceptions.JobTimeout"
    assert "did not stop when asked" in hung.error_message
    assert starts(journal) == {"hang": 2, "behind": 1, "sibling": 1}
    assert by_type["tests.sample.await_leave"].status == "succeeded"
