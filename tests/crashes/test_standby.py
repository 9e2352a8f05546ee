"""Of several ``runworkers --standby`` one works; another takes over when it is lost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import pytest

from django_jobqueue import operations
from django_jobqueue.contrib.leases import take_away_leases
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.models import ArchivedJob, Host, QueuedJob, Worker
from django_jobqueue.store.connection import OwnConnection
from tests.crashes.seen import children, is_gone, kill, maintenance_of, starts
from tests.crashes.test_exporter import ANY_PORT, get
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

Run = Callable[..., RunWorkers]
FLAGS = ("--standby", "main", "--threads", "1")
SHORT, LONG = ("--lease", "2"), ("--lease", "60")
EAGER = {
    **BRISK,
    "contrib.leases.standby.AFTER_LOSS": 0.5,
    "contrib.leases.standby.LONGEST_PAUSE": 0.05,
}


def begin(runworkers: Run, *flags: str) -> RunWorkers:
    return runworkers(*FLAGS, *flags, constants=EAGER)


def begin_two(runworkers: Run, *flags: str) -> tuple[RunWorkers, RunWorkers]:
    """Two hosts; the first is active, the second waits."""
    first = begin(runworkers, *flags)
    first.started()
    second = begin(runworkers, *flags)
    eventually(lambda: "Standing by" in second.output, what=lambda: second.output)
    return first, second


def lease_row() -> Lease:
    return Lease.objects.get(name="runworkers:main")


def is_active(run: RunWorkers) -> bool:
    row = lease_row()
    return row.token is not None and row.holder.endswith(f":{run.process.pid}")


def first_worker(run: RunWorkers) -> datetime:
    rows = Worker.objects.filter(supervisor__endswith=f":{run.process.pid}")
    return rows.earliest("id").started_at


def host_row(run: RunWorkers) -> Host:
    return eventually(
        Host.objects.filter(name__endswith=f":{run.process.pid}").first,
        what=lambda: run.output,
    )


def is_(run: RunWorkers, state: str) -> None:
    eventually(lambda: host_row(run).state == state, what=lambda: run.output)


def ask(run: RunWorkers, what: str) -> None:
    operations.ask_hosts(host_row(run).pk, what)


def test_the_second_works_when_the_first_was_killed(
    runworkers: Run, journal: str
) -> None:
    first, second = begin_two(runworkers, *SHORT)
    assert second.workers() == []
    assert is_active(first)
    is_(first, "running")
    is_(second, "standby")
    fence = lease_row().fence
    jobs.linger.enqueue(journal, "lost")
    eventually(lambda: starts(journal))
    kill(first.process.pid)
    first.wait()
    until = lease_row().lease_until
    second.started()
    assert is_active(second)
    is_(second, "running")
    assert lease_row().fence == fence + 1
    assert lease_row().taken_at >= until
    assert first_worker(second) > lease_row().taken_at
    eventually(archived)
    assert starts(journal) == {"lost": 2}


def test_the_second_works_at_once_when_the_first_was_stopped(runworkers: Run) -> None:
    """One that waits is ready, and leaves the other alone when it is stopped."""
    first, other = begin_two(runworkers, *LONG)
    second = begin(runworkers, *LONG, *ANY_PORT)
    eventually(lambda: "Standing by" in second.output)
    eventually(lambda: get(second, "/readyz").status == 200)
    answer = json.loads(get(second, "/readyz").body)
    assert (answer["processes"], answer["lease_seconds"]) == (0, None)
    assert other.stop() == 0
    assert is_active(first)
    assert first.workers()
    until = lease_row().lease_until
    assert first.stop() == 0
    second.started()
    assert lease_row().taken_at < until
    assert second.stop() == 0
    assert lease_row().token is None


def test_a_host_whose_lease_was_taken_away_ends_its_jobs_and_waits(
    runworkers: Run, journal: str
) -> None:
    """A job that goes on for longer than the lease is killed, and run by the other.
    Where nobody waits for the lease, it is taken again."""
    first, second = begin_two(runworkers, *SHORT)
    (pid,) = first.workers()
    jobs.linger.enqueue(journal, "long")
    eventually(lambda: starts(journal))
    take_away_leases("runworkers:main")
    eventually(lambda: is_active(second))
    eventually(lambda: is_gone(pid))
    (job,) = eventually(archived)
    assert (job.crashes, starts(journal)) == (0, {"long": 2})
    assert first.stop() == 0
    (pid,) = second.workers()
    fence = lease_row().fence
    take_away_leases("runworkers:main")
    eventually(lambda: is_gone(pid))
    jobs.add.enqueue(1)
    eventually(lambda: len(archived()) == 2, what=lambda: second.output)
    assert lease_row().fence == fence + 2


def test_a_host_that_cannot_renew_its_lease_kills_its_workers_before_it_lapses(
    runworkers: Run, own: OwnConnection, journal: str
) -> None:
    """Somebody has locked the row of the lease, and of it alone. The lease outlives the
    maintenance process."""
    run = begin(runworkers, *SHORT)
    (pid,) = run.started()
    maintenance = maintenance_of(run)
    kill(maintenance)
    eventually(lambda: is_gone(maintenance))
    before = lease_row().renewed_at
    eventually(lambda: lease_row().renewed_at > before)
    assert (run.workers(), lease_row().fence) == ([pid], 1)
    jobs.linger.enqueue(journal, "long")
    eventually(lambda: starts(journal))
    with own.transaction() as db:
        db.fetch("SELECT FROM jobqueue_leases_lease FOR UPDATE")
        eventually(lambda: is_gone(pid), what=lambda: run.output)
        assert "another host may be active any moment" in run.output
    eventually(archived)
    assert starts(journal) == {"long": 2}
    assert lease_row().fence == 1  # nobody else has had it


@pytest.mark.slow("its lease is taken away in another way")
def test_a_host_that_was_paused_for_long_finds_that_another_is_active(
    runworkers: Run,
) -> None:
    first, second = begin_two(runworkers, *SHORT)
    (pid,) = first.workers()
    paused = [first.process.pid, *children(first.process.pid)]
    for each in paused:
        os.kill(each, signal.SIGSTOP)
    second.started()
    assert is_active(second)
    seen = first.output.count("Standing by")
    for each in paused:
        with suppress(ProcessLookupError):  # the first one may have killed it by now
            os.kill(each, signal.SIGCONT)
    eventually(lambda: is_gone(pid), what=lambda: first.output)
    eventually(lambda: first.output.count("Standing by") > seen)
    for _ in range(2):  # rounds in which it could have started another worker
        before = host_row(first).renewed_at
        eventually(lambda at=before: host_row(first).renewed_at > at)
    assert first.workers() == []
    assert is_active(second)


def test_a_host_that_is_parked_lets_the_other_one_work(
    runworkers: Run, journal: str
) -> None:
    first, second = begin_two(runworkers, *LONG)
    jobs.await_leave.enqueue(journal, "long")
    eventually(lambda: starts(journal))
    operations.scale_hosts(host_row(first).pk, processes=0)
    eventually(lambda: "processes 0" in first.output)
    assert is_active(first)  # until its job has ended
    jobs.give_leave(journal, "long")
    second.started()
    assert is_active(second)
    is_(first, "parked")
    assert second.stop() == 0
    eventually(lambda: lease_row().token is None)
    operations.scale_hosts(host_row(first).pk, processes=1)
    eventually(lambda: is_active(first), what=lambda: first.output)
    is_(first, "running")
    assert set(ArchivedJob.objects.values_list("attempts", "crashes")) == {(1, 0)}
    assert not QueuedJob.objects.exists()


def test_a_host_that_is_drained_does_not_take_over_and_stays_active_if_it_was(
    runworkers: Run,
) -> None:
    first, second = begin_two(runworkers, *LONG)
    ask(second, "drain")
    is_(second, "draining")
    assert first.stop() == 0
    third = begin(runworkers, *LONG)
    third.started()
    assert is_active(third)
    ask(third, "drain")
    is_(third, "draining")
    assert is_active(third)
    assert second.workers() == []
    ask(second, "resume")
    is_(second, "standby")
    operations.scale_hosts(host_row(second).pk, processes=2)
    eventually(lambda: host_row(second).processes == 2, what=lambda: second.output)
    ask(third, "stop")
    assert len(second.started(2)) == 2
    assert third.wait() == 0
    assert is_active(second)


def test_a_name_that_no_lease_can_have_is_refused(runworkers: Run) -> None:
    run = runworkers("--standby", "x" * 190)
    assert run.wait() == 1
    assert "--standby must have at most 189 characters" in run.output
