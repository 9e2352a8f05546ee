"""kill -9 of real processes, at each hop of a job's path, and what comes of it.

The lease is a minute here: whatever happens within the test happens without it.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group

from django_jobqueue import operations
from django_jobqueue.models import Failure, FailureGroup, Host, Worker
from django_jobqueue.store.connection import OwnConnection
from tests.crashes.seen import (
    LEASE,
    all_archived,
    children,
    ends,
    is_gone,
    kill,
    locked,
    maintenance_of,
    starts,
    waiting_for_locks,
)
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]


def test_jobs_of_a_worker_killed_in_the_handler_run_again_but_not_at_most_once_jobs(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "4", *LEASE)
    (pid,) = run.started()
    for word in "abc":
        jobs.linger.enqueue(journal, word)
    jobs.write_once.enqueue(journal, "once", seconds=60)
    eventually(lambda: len(starts(journal)) == 4)
    kill(pid)

    eventually(all_archived(4))
    assert starts(journal) == {**dict.fromkeys("abc", 2), "once": 1}
    assert ends(journal) == dict.fromkeys("abc", 1)
    (once,) = archived(job_type=jobs.write_once.name)
    assert (once.status, once.attempts, once.crashes) == ("failed", 1, 1)
    assert once.error_message.startswith("outcome unknown: killed by signal 9")
    for job in archived(job_type=jobs.linger.name):
        assert (job.status, job.attempts, job.crashes) == ("succeeded", 1, 1)
    failures = Failure.objects.filter(job_type=jobs.linger.name)
    assert {failure.end for failure in failures} == {"crashed"}
    assert {failure.reason for failure in failures} == {"killed by signal 9 (SIGKILL)"}
    classes = FailureGroup.objects.values_list("error_class", flat=True)
    assert set(classes) == {"jobqueue.WorkerLost"}


def test_a_job_claimed_by_a_worker_that_is_killed_before_the_start_runs_once(
    runworkers: Run, journal: str
) -> None:
    """Or never, if it may run at most once: nobody knows that it did not."""
    env = {"SAMPLE_KILL_BEFORE": "a once"}
    run = runworkers("--threads", "1", *LEASE, constants=BRISK, **env)
    run.started()
    jobs.write.enqueue(journal, "a")
    eventually(all_archived(1))
    jobs.write_once.enqueue(journal, "once")

    eventually(all_archived(2))
    assert starts(journal) == {"a": 1}
    (once,) = archived(status="failed")
    assert once.error_message.startswith("outcome unknown: killed by signal 9")


def test_a_job_whose_worker_is_killed_while_it_claims_runs_once(
    runworkers: Run, journal: str, own: OwnConnection
) -> None:
    """The claim commits on the server after its worker died and was recovered."""
    run = runworkers("--threads", "1", *LEASE)
    (pid,) = run.started()
    worker = Worker.objects.get(pid=pid, state="running")
    operations.pause([jobs.write.name])
    jobs.write.enqueue(journal, "a")
    with locked(own, "jobqueue_queuedjob"):
        operations.resume([jobs.write.name])
        eventually(lambda: waiting_for_locks("jobqueue dispatcher"), what="the claim")
        kill(pid)
        eventually(lambda: Worker.objects.get(id=worker.id).state == "lost")
    eventually(all_archived(1))
    assert starts(journal) == {"a": 1}
    assert archived()[0].crashes <= 1


def test_a_worker_killed_at_completion_leaves_what_each_sort_of_job_promises(
    runworkers: Run, journal: str, own: OwnConnection
) -> None:
    """The completion waits for a lock on the server: after the effects, before they are
    committed."""
    run = runworkers("--threads", "4", *LEASE)
    (pid,) = run.started()
    with locked(own, "jobqueue_archivedjob"):
        jobs.write.enqueue(journal, "a")
        jobs.write_once.enqueue(journal, "once")
        jobs.write_atomic.enqueue(journal, "atomic")
        link = jobs.count_one.enqueue(7)
        eventually(lambda: ends(journal) == {"a": 1, "once": 1})
        eventually(lambda: ["wrote", "atomic"] in jobs.notes(journal))
        eventually(lambda: waiting_for_locks("jobqueue completer"))
        kill(pid)
    eventually(all_archived(6))

    assert ends(journal) == {"a": 2, "once": 1}  # at least, and at most once
    statuses = {job.job_type_id: job.status for job in archived()}
    assert statuses[jobs.write.name] == "succeeded"
    assert statuses[jobs.write_once.name] == "failed"
    assert jobs.notes(journal).count(["wrote", "atomic"]) == 2
    assert [group.name for group in Group.objects.all()] == ["atomic"]  # exactly once
    assert statuses[jobs.write_atomic.name] == "succeeded"
    (follower,) = archived(job_type=jobs.double.name)  # exactly one
    assert follower.follows == link.id
    (last,) = archived(job_type=jobs.report_number.name)
    assert last.result == "it is 14"


def test_a_job_that_ends_its_process_fails_in_the_end_and_its_neighbours_do_not(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "4", *LEASE, constants=BRISK)
    run.started()
    for word in "abc":
        jobs.write.enqueue(journal, word, seconds=0.1)
    for over, (how, reason) in enumerate(
        {"kill": "killed by signal 9 (SIGKILL)", "0": "exited with code 0"}.items()
    ):
        poison = jobs.die.enqueue(journal, how)
        eventually(lambda n=over: len(archived(job_type=jobs.die.name)) == n + 1)
        (job,) = archived(id=poison.id)
        assert (job.status, job.crashes, job.error_message) == ("failed", 3, reason)
        assert starts(journal)["die"] == 3 * (over + 1)
    eventually(all_archived(5))
    innocent = archived(job_type=jobs.write.name)
    assert [job.status for job in innocent] == ["succeeded"] * 3


def test_children_die_with_a_killed_supervisor_and_its_successor_takes_over(
    runworkers: Run, journal: str
) -> None:
    """Also one that hears of nothing, as a handler holds the interpreter's lock."""
    first = runworkers("--threads", "2", *LEASE)
    (pid,) = first.started()
    jobs.linger.enqueue(journal, "a")
    eventually(lambda: starts(journal)["a"])
    jobs.hold_lock_once.enqueue(journal, "asleep in C")
    eventually(lambda: starts(journal)["hold"])
    first.process.kill()
    first.process.wait()
    eventually(lambda: is_gone(pid), what="the worker to die")
    assert [job.status for job in queued()] == ["running", "running"]

    second = runworkers("--threads", "2", *LEASE)
    eventually(all_archived(2))
    (lost,) = archived(status="failed")
    assert lost.error_message == "outcome unknown: its supervisor died"
    assert starts(journal) == {"a": 2, "hold": 1}
    states = dict(Host.objects.values_list("name", "state"))
    names = [f"{socket.gethostname()}:{run.process.pid}" for run in (first, second)]
    assert [states[name] for name in names] == ["lost", "running"]


def test_another_host_takes_over_when_the_lease_has_lapsed(
    runworkers: Run, journal: str
) -> None:
    # Another host name, so that nothing but the lease can tell.
    lost = runworkers("--threads", "1", "--lease", "2", SAMPLE_HOST="lost")
    lost.started()
    jobs.linger.enqueue(journal, "a")
    eventually(lambda: starts(journal))
    other = runworkers("--threads", "1", "--lease", "2")
    other.started()
    lost.close()  # kills all its processes

    eventually(all_archived(1))
    assert starts(journal)["a"] == 2
    (failure,) = Failure.objects.all()
    assert failure.reason.startswith("its lease lapsed")
    assert failure.worker.startswith("lost:")


def test_a_maintenance_process_that_is_killed_or_stopped_is_replaced(
    runworkers: Run, journal: str
) -> None:
    """Its successors renew the lease of a job that goes on."""
    run = runworkers("--threads", "1", "--lease", "2", constants=BRISK)
    (worker,) = run.started()
    jobs.await_leave.enqueue(journal, "a")
    eventually(lambda: starts(journal))
    for number in (signal.SIGKILL, signal.SIGSTOP):
        maintenance = maintenance_of(run)
        os.kill(maintenance, number)
        eventually(lambda pid=maintenance: is_gone(pid))
        before = Worker.objects.get().renewed_at
        eventually(lambda at=before: Worker.objects.get().renewed_at > at)
    jobs.give_leave(journal, "a")

    eventually(all_archived(1))
    assert starts(journal) == {"a": 1}
    assert run.workers() == [worker]
    assert "starting another" in run.output
    killed = f"The maintenance process {maintenance} is stopped (SIGSTOP); killing it"
    assert killed in run.output


def test_a_host_that_lost_all_its_processes_at_once_starts_them_again(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", *LEASE)
    run.started()
    run.signal(signal.SIGSTOP)  # so that it finds them all dead at one look
    for pid in (pids := children(run.process.pid)):
        kill(pid)
    eventually(lambda: all(is_gone(p) and len(threads_of(p)) == 1 for p in pids))
    run.signal(signal.SIGCONT)

    jobs.write.enqueue(journal, "a")
    eventually(all_archived(1))
    assert starts(journal) == {"a": 1}
    assert run.stop() == 0


def threads_of(pid: int) -> list[str]:
    """The threads of a process that have not ended; its main one stays to the last."""
    return os.listdir(f"/proc/{pid}/task")
