"""Of several ``runworkers --standby`` one works; another takes over when it is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import pytest

from django_jobqueue import operations
from django_jobqueue.models import ArchivedJob, Host, Lease, QueuedJob, Worker
from django_jobqueue.store.connection import OwnConnection
from tests.crashes.test_kills import children, is_gone, kill
from tests.sample import jobs
from tests.sample.jobs import notes
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

Run = Callable[..., RunWorkers]
FLAGS = ("--standby", "main", "--threads", "1", "--lease", "3")


def start(runworkers: Run, *flags: str) -> tuple[RunWorkers, RunWorkers]:
    """Two hosts; the first is active, the second waits."""
    first = runworkers(*FLAGS, *flags)
    first.started()
    second = runworkers(*FLAGS, *flags)
    eventually(lambda: "Standing by" in second.output, what=lambda: second.output)
    return first, second


def lease_row() -> Lease:
    """The lease that lets a host work."""
    return Lease.objects.get(name="runworkers:main")


def is_active(run: RunWorkers) -> bool:
    """Whether this one holds the lease."""
    row = lease_row()
    return row.token is not None and row.holder.endswith(f":{run.process.pid}")


def first_worker(run: RunWorkers) -> datetime:
    """When its first worker started."""
    rows = Worker.objects.filter(supervisor__endswith=f":{run.process.pid}")
    return rows.earliest("id").started_at


def host_state(run: RunWorkers) -> str:
    """The state in the row of this host."""
    return Host.objects.get(name__endswith=f":{run.process.pid}").state


def test_the_second_works_when_the_first_was_killed(
    runworkers: Run, journal: str
) -> None:
    first, second = start(runworkers)
    jobs.write.enqueue(journal, "before")
    eventually(archived)
    assert second.workers() == []
    assert is_active(first)
    eventually(
        lambda: (host_state(first), host_state(second)) == ("running", "standby")
    )
    fence = lease_row().fence
    jobs.write.enqueue(journal, "lost", 60)
    eventually(lambda: ["start", "lost"] in notes(journal))
    kill(first.process.pid)
    first.wait()
    until = lease_row().lease_until
    second.started()
    assert is_active(second)
    eventually(lambda: host_state(second) == "running")
    assert lease_row().fence == fence + 1
    assert lease_row().taken_at >= until
    assert first_worker(second) > lease_row().taken_at
    eventually(lambda: notes(journal).count(["start", "lost"]) == 2)


def test_the_second_works_at_once_when_the_first_was_stopped(runworkers: Run) -> None:
    first, second = start(runworkers, "--lease", "60")
    until = lease_row().lease_until
    assert first.stop() == 0
    second.started()
    assert lease_row().taken_at < until
    assert second.stop() == 0
    assert lease_row().token is None


def test_a_host_that_waits_ends_when_it_is_told_to(runworkers: Run) -> None:
    first, second = start(runworkers)
    assert second.stop() == 0
    assert is_active(first)
    assert first.workers()


def test_a_host_whose_lease_was_taken_away_ends_its_jobs_and_waits(
    runworkers: Run, journal: str
) -> None:
    """A job that goes on for longer than the lease is killed, and run by the other."""
    first, second = start(runworkers)
    (pid,) = first.workers()
    jobs.write.enqueue(journal, "long", 60)
    eventually(lambda: notes(journal))
    operations.take_away_leases("runworkers:main")
    eventually(lambda: is_active(second))
    eventually(lambda: is_gone(pid))
    eventually(lambda: len([n for n in notes(journal) if n[0] == "start"]) == 2)
    assert [job.crashes for job in QueuedJob.objects.all()] == [0]


def test_a_host_that_nobody_waits_for_takes_its_lease_again(
    runworkers: Run, journal: str
) -> None:
    run = runworkers(*FLAGS)
    (pid,) = run.started()
    operations.take_away_leases("runworkers:main")
    eventually(lambda: is_gone(pid))
    jobs.write.enqueue(journal, "after")
    eventually(archived, what=lambda: run.output)
    assert lease_row().fence == 3
    assert run.stop() == 0


def test_the_lease_outlives_the_maintenance_process(runworkers: Run) -> None:
    run = runworkers(*FLAGS)
    (pid,) = run.started()
    (maintenance,) = set(children(run.process.pid)) - {pid}
    kill(maintenance)
    eventually(lambda: is_gone(maintenance))
    before = lease_row().renewed_at
    eventually(lambda: lease_row().renewed_at > before)
    assert (run.workers(), lease_row().fence) == ([pid], 1)
    assert run.stop() == 0


def test_a_host_that_cannot_renew_its_lease_kills_its_workers_before_it_lapses(
    runworkers: Run, own: OwnConnection, journal: str
) -> None:
    """Somebody has locked the row of the lease, and of it alone."""
    run = runworkers(*FLAGS)
    (pid,) = run.started()
    jobs.write.enqueue(journal, "long", 60)
    eventually(lambda: notes(journal))
    with own.transaction() as db:
        db.fetch("SELECT FROM jobqueue_lease FOR UPDATE")
        eventually(lambda: is_gone(pid), what=lambda: run.output)
        assert "another host may be active any moment" in run.output
    eventually(lambda: notes(journal).count(["start", "long"]) == 2)
    assert lease_row().fence == 1  # nobody else has had it


def test_a_host_that_was_paused_for_long_finds_that_another_is_active(
    runworkers: Run,
) -> None:
    first, second = start(runworkers)
    (pid,) = first.workers()
    paused = [first.process.pid, *children(first.process.pid)]
    for each in paused:
        os.kill(each, signal.SIGSTOP)
    second.started()
    assert is_active(second)
    for each in paused:
        with suppress(ProcessLookupError):  # the first one may have killed it by now
            os.kill(each, signal.SIGCONT)
    eventually(lambda: is_gone(pid), what=lambda: first.output)
    eventually(lambda: "Standing by" in first.output, what=lambda: first.output)
    time.sleep(0.5)  # it would have started another worker
    assert first.workers() == []
    assert is_active(second)


def ask(run: RunWorkers, what: str) -> None:
    """Ask this host for something from afar."""
    operations.ask_hosts(host_row(run).pk, what)


def host_row(run: RunWorkers) -> Host:
    """The row of this host."""
    return eventually(
        Host.objects.filter(name__endswith=f":{run.process.pid}").first,
        what=lambda: run.output,
    )


def test_a_host_that_is_parked_lets_the_other_one_work(
    runworkers: Run, journal: str
) -> None:
    first, second = start(runworkers)
    jobs.write.enqueue(journal, "long", 3)
    eventually(lambda: ["start", "long"] in notes(journal))
    operations.scale_hosts(host_row(first).pk, processes=0)
    second.started()
    assert ["end", "long"] in notes(journal)  # before the other one was active
    assert is_active(second)
    eventually(lambda: host_state(first) == "parked")
    assert second.stop() == 0
    eventually(lambda: lease_row().token is None)
    operations.scale_hosts(host_row(first).pk, processes=1)
    eventually(lambda: is_active(first), what=lambda: first.output)
    eventually(lambda: host_state(first) == "running")
    assert set(ArchivedJob.objects.values_list("attempts", "crashes")) == {(1, 0)}


def test_a_host_that_waits_and_is_drained_does_not_take_over(runworkers: Run) -> None:
    first, second = start(runworkers)
    ask(second, "drain")
    eventually(lambda: host_state(second) == "draining", what=lambda: second.output)
    ask(second, "restart")
    eventually(lambda: second.output.count("starts 1 worker process") == 2)
    assert first.stop() == 0
    third = runworkers(*FLAGS)
    third.started()
    assert is_active(third)
    assert third.stop() == 0
    assert second.workers() == []
    ask(second, "resume")
    second.started()
    assert is_active(second)


def test_an_active_host_that_is_drained_stays_active_until_it_is_stopped(
    runworkers: Run,
) -> None:
    first, second = start(runworkers)
    ask(first, "drain")
    eventually(lambda: host_state(first) == "draining", what=lambda: first.output)
    assert is_active(first)
    assert second.workers() == []
    ask(first, "stop")
    second.started()
    assert first.wait() == 0


def test_a_host_that_waits_is_scaled_restarted_and_stopped_from_afar(
    runworkers: Run,
) -> None:
    first, second = start(runworkers)
    operations.scale_hosts(host_row(second).pk, processes=2)
    eventually(lambda: host_row(second).processes == 2, what=lambda: second.output)
    ask(second, "restart")
    eventually(lambda: second.output.count("starts 1 worker process") == 2)
    eventually(lambda: host_row(second).applied.get("restart"))
    eventually(lambda: host_state(second) == "standby", what=lambda: second.output)
    ask(first, "stop")
    assert len(second.started(2)) == 2
    assert first.wait() == 0
    ask(second, "stop")
    assert second.wait() == 0


def test_a_name_that_no_lease_can_have_is_refused(runworkers: Run) -> None:
    run = runworkers("--standby", "x" * 190)
    assert run.wait() == 1
    assert "--standby must have at most 189 characters" in run.output
