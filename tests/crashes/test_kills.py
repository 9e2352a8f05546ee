"""kill -9 of real processes, at each hop of a job's path, and what comes of it.

The lease is a minute here: whatever happens within the test happens without it.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from django_jobqueue import operations
from django_jobqueue.models import Failure, FailureGroup, Host, Worker
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
LEASE = ("--lease", "60")


def starts(journal: str) -> Counter[str]:
    """How often each word was started."""
    return Counter(words[1] for words in jobs.notes(journal) if words[0] == "start")


def ends(journal: str) -> Counter[str]:
    """How often each word was ended."""
    return Counter(words[1] for words in jobs.notes(journal) if words[0] == "end")


def kill(pid: int) -> None:
    """Kill it, whatever it does."""
    os.kill(pid, signal.SIGKILL)


def all_archived(count: int) -> Callable[[], bool]:
    """Whether so many jobs are over and none is left."""
    return lambda: len(archived()) == count and not queued()


@contextmanager
def locked(own: OwnConnection, table: str) -> Iterator[None]:
    """Nobody can write to this table meanwhile."""
    with own.raw() as connection, connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        yield


def blocked(application: str) -> Callable[[], bool]:
    """Whether a connection of this name waits for a lock."""
    from django.db import connection

    def check() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND application_name = %s AND datname = current_database()",
                [application],
            )
            return bool(cursor.fetchone()[0])

    return check


def test_jobs_of_a_worker_killed_in_the_handler_run_again(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "4", *LEASE)
    (pid,) = run.started()
    for word in "abcd":
        jobs.write.enqueue(journal, word, seconds=1.0)
    eventually(lambda: sum(starts(journal).values()) == 4)
    kill(pid)

    eventually(all_archived(4))
    assert starts(journal) == dict.fromkeys("abcd", 2)
    assert ends(journal) == dict.fromkeys("abcd", 1)
    for job in archived():
        assert (job.status, job.attempts, job.crashes) == ("succeeded", 1, 1)
    failures = Failure.objects.all()
    assert {failure.end for failure in failures} == {"crashed"}
    assert {failure.reason for failure in failures} == {"killed by signal 9 (SIGKILL)"}
    assert FailureGroup.objects.get().error_class == "jobqueue.WorkerLost"


def test_a_job_claimed_by_a_worker_that_is_killed_before_the_start_runs_once(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", *LEASE, SAMPLE_KILL_BEFORE="a")
    run.started()
    jobs.write.enqueue(journal, "a")

    eventually(lambda: "SIGKILL" in run.output)
    run.close()
    assert starts(journal) == {}
    runworkers("--threads", "1", *LEASE)
    eventually(all_archived(1))
    assert starts(journal) == {"a": 1}


def test_a_job_whose_worker_is_killed_while_it_claims_runs_once(
    runworkers: Run, journal: str, own: OwnConnection
) -> None:
    """The claim commits on the server after its worker died and was recovered."""
    run = runworkers("--threads", "1", *LEASE)
    (pid,) = run.started()
    worker = Worker.objects.get(pid=pid, state="running")
    operations.pause(["tests.sample.write"])
    jobs.write.enqueue(journal, "a")
    with locked(own, "jobqueue_queuedjob"):
        operations.resume(["tests.sample.write"])
        eventually(blocked("jobqueue dispatcher"), what="the claim to wait")
        kill(pid)
        eventually(lambda: Worker.objects.get(id=worker.id).state == "lost")
    eventually(all_archived(1))
    assert starts(journal) == {"a": 1}
    assert archived()[0].crashes <= 1


def test_a_worker_killed_at_completion_leaves_one_archived_job(
    runworkers: Run, journal: str, own: OwnConnection
) -> None:
    run = runworkers("--threads", "1", *LEASE)
    (pid,) = run.started()
    with locked(own, "jobqueue_archivedjob"):
        jobs.write.enqueue(journal, "a")
        eventually(blocked("jobqueue completer"), what="the completion to wait")
        assert ends(journal) == {"a": 1}
        kill(pid)
    eventually(all_archived(1))
    assert ends(journal) == {"a": 2}  # at least once: its completion was not written
    assert archived()[0].status == "succeeded"


@pytest.mark.parametrize("at", ["before", "in", "completion"])
def test_an_at_most_once_job_is_never_started_again(
    runworkers: Run, journal: str, own: OwnConnection, at: str
) -> None:
    env = {"SAMPLE_KILL_BEFORE": "a"} if at == "before" else {}
    run = runworkers("--threads", "1", *LEASE, **env)
    (pid,) = run.started()
    if at == "completion":
        with locked(own, "jobqueue_archivedjob"):
            jobs.write_once.enqueue(journal, "a")
            eventually(blocked("jobqueue completer"))
            kill(pid)
    else:
        jobs.write_once.enqueue(journal, "a", seconds=60)
        if at == "in":
            eventually(lambda: starts(journal))
            kill(pid)

    eventually(all_archived(1))
    (job,) = archived()
    assert (job.status, job.attempts, job.crashes) == ("failed", 1, 1)
    assert job.error_message.startswith("outcome unknown: killed by signal 9")
    assert starts(journal)["a"] == (0 if at == "before" else 1)


def test_the_effects_of_an_atomic_job_happen_exactly_once(
    runworkers: Run, journal: str, own: OwnConnection
) -> None:
    run = runworkers("--threads", "2", *LEASE)
    (pid,) = run.started()
    with locked(own, "jobqueue_archivedjob"):
        jobs.write_atomic.enqueue(journal, "first")
        eventually(lambda: ["wrote", "first"] in jobs.notes(journal))
        kill(pid)  # after its effects, before the commit
    eventually(all_archived(1))

    assert jobs.notes(journal) == [["wrote", "first"]] * 2
    assert [group.name for group in Group.objects.all()] == ["first"]
    assert archived()[0].status == "succeeded"


def test_a_poison_job_is_archived_and_its_neighbours_are_not(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "4", "--processes", "1", *LEASE)
    run.started()
    for word in "abc":
        jobs.write.enqueue(journal, word, seconds=0.3)
    jobs.die.enqueue(journal)
    eventually(all_archived(4))

    by_type = {job.job_type_id: job for job in archived()}
    poison = by_type["tests.sample.die"]
    assert (poison.status, poison.crashes) == ("failed", 3)
    assert poison.error_message == "killed by signal 9 (SIGKILL)"
    assert starts(journal)["die"] == 3
    innocent = archived(job_type="tests.sample.write")
    assert [job.status for job in innocent] == ["succeeded"] * 3


@pytest.mark.parametrize(
    ("how", "reason"), [("3", "exited with code 3"), ("0", "exited with code 0")]
)
def test_a_handler_that_ends_its_process_is_a_crash(
    runworkers: Run, journal: str, how: str, reason: str
) -> None:
    run = runworkers("--threads", "1", *LEASE)
    run.started()
    jobs.die.enqueue(journal, how)
    eventually(all_archived(1))
    (job,) = archived()
    assert (job.status, job.error_message) == ("failed", reason)
    assert starts(journal) == {"die": 3}


def test_workers_that_die_at_once_are_replaced_later_and_later(
    runworkers: Run, journal: str
) -> None:
    runworkers("--threads", "1", *LEASE)
    jobs.die_again.enqueue(journal)
    eventually(lambda: Worker.objects.count() >= 5, within=60)
    starts = Worker.objects.order_by("id").values_list("started_at", flat=True)[:5]
    # From the second death on there is a rest: 0.4, 0.8 and 1.6 s so far.
    assert (starts[4] - starts[1]).total_seconds() > 2.5


def test_children_die_with_a_killed_supervisor_and_its_successor_takes_over(
    runworkers: Run, journal: str
) -> None:
    first = runworkers("--threads", "2", *LEASE)
    (pid,) = first.started()
    jobs.write.enqueue(journal, "a", seconds=60)
    jobs.write_once.enqueue(journal, "b", seconds=60)
    eventually(lambda: sum(starts(journal).values()) == 2)
    first.process.kill()
    first.process.wait()
    eventually(lambda: is_gone(pid), what="the worker to die")
    assert [job.status for job in queued()] == ["running", "running"]

    second = runworkers("--threads", "2", *LEASE)
    eventually(lambda: starts(journal)["a"] == 2)
    eventually(lambda: len(archived()) == 1)
    assert archived()[0].error_message == "outcome unknown: its supervisor died"
    assert starts(journal) == {"a": 2, "b": 1}
    states = dict(Host.objects.values_list("name", "state"))
    names = [f"{socket.gethostname()}:{run.process.pid}" for run in (first, second)]
    assert [states[name] for name in names] == ["lost", "running"]
    second.close()


def test_a_child_that_hears_nothing_dies_with_a_killed_supervisor_as_well(
    runworkers: Run, journal: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    run = runworkers("--threads", "1", *LEASE)
    (pid,) = run.started()
    jobs.hold.enqueue(journal, str(gate))
    eventually(lambda: starts(journal) == {"hold": 1})
    run.process.kill()
    try:
        eventually(lambda: is_gone(pid), what="the worker to die")
    finally:
        os.close(os.open(gate, os.O_RDWR))


def test_another_host_takes_over_when_the_lease_has_lapsed(
    runworkers: Run, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another host name, so that nothing but the lease can tell.
    lost = runworkers("--threads", "1", "--lease", "2", SAMPLE_HOST="lost")
    lost.started()
    jobs.write.enqueue(journal, "a", seconds=60)
    eventually(lambda: starts(journal))
    other = runworkers("--threads", "1", "--lease", "2")
    other.started()
    lost.close()  # kills all its processes

    eventually(lambda: starts(journal)["a"] == 2)
    (failure,) = Failure.objects.all()
    assert failure.reason.startswith("its lease lapsed")
    assert failure.worker.startswith("lost:")


def test_a_stopped_worker_process_is_killed_and_its_jobs_run_elsewhere(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", *LEASE)
    (pid,) = run.started()
    jobs.write.enqueue(journal, "a", seconds=0.5)
    eventually(lambda: starts(journal))
    os.kill(pid, signal.SIGSTOP)

    eventually(all_archived(1))
    assert starts(journal) == {"a": 2}
    assert ends(journal) == {"a": 1}
    assert is_gone(pid)


def test_a_killed_maintenance_process_is_replaced(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", "--lease", "2")
    (pid,) = run.started()
    maintenance = next(child for child in children(run.process.pid) if child != pid)
    kill(maintenance)
    jobs.write.enqueue(journal, "a", seconds=4.0)  # longer than the lease

    eventually(all_archived(1))
    assert starts(journal) == {"a": 1}
    assert "starting another" in run.output


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


def test_a_stopped_maintenance_process_is_killed_and_replaced(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1")
    (pid,) = run.started()
    maintenance = next(child for child in children(run.process.pid) if child != pid)
    os.kill(maintenance, signal.SIGSTOP)

    eventually(lambda: "starting another" in run.output)
    killed = f"The maintenance process {maintenance} is stopped (SIGSTOP); killing it"
    assert killed in run.output
    assert run.workers() == [pid]
    jobs.write.enqueue(journal, "a")
    eventually(all_archived(1))


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody reaped has."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def threads_of(pid: int) -> list[str]:
    """The threads of a process that have not ended; its main one stays to the last."""
    return os.listdir(f"/proc/{pid}/task")


def children(pid: int) -> list[int]:
    """Process ids of a process's children."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


LINKS = ("link_a", "link_b", "link_c", "link_end")


def followed(name: str) -> Counter[object]:
    """How many jobs of this type follow on each job."""
    over = archived(job_type=f"tests.sample.{name}")
    return Counter(row.follows for row in over)


def test_every_job_has_its_followers_once_whenever_workers_are_killed(
    runworkers: Run,
) -> None:
    """From success, from failure and from an atomic job; chains of three links."""
    count = 200
    run = runworkers("--threads", "4", "--processes", "2", *LEASE)
    run.started(2)
    starts = set(jobs.link_a.enqueue_many({"number": n} for n in range(count)))
    killed: set[int] = set()
    while len(killed) < 8 and len(archived()) < 5 * count:
        alive = [pid for pid in run.workers() if pid not in killed]
        if alive:
            time.sleep(0.3)  # it is in the middle of its work
            kill(alive[-1])
            killed.add(alive[-1])
    assert len(killed) > 3
    eventually(all_archived(5 * count), within=120)
    assert sum(row.crashes for row in archived()) > 3

    of_type = {
        name: {row.id for row in archived(job_type=f"tests.sample.{name}")}
        for name in LINKS
    }
    assert of_type["link_a"] == starts
    assert followed("link_b") == dict.fromkeys(starts, 1)
    assert followed("link_c") == dict.fromkeys(of_type["link_b"], 1)
    ends = dict.fromkeys(starts | of_type["link_c"], 1)
    assert followed("link_end") == ends


def test_a_worker_killed_at_completion_leaves_one_follower(
    runworkers: Run, own: OwnConnection
) -> None:
    """Its completion waits for a lock on the server, and is undone or done there."""
    run = runworkers("--threads", "1", *LEASE)
    (pid,) = run.started()
    with locked(own, "jobqueue_archivedjob"):
        made = jobs.link_a.enqueue(7)
        eventually(blocked("jobqueue completer"), what="the completion to wait")
        kill(pid)
    eventually(all_archived(5), within=60)
    assert followed("link_b") == {made.id: 1}
    assert [row.result for row in archived(job_type="tests.sample.link_c")] == [7]
