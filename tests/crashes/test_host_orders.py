"""Real hosts do what operators ask of them, under load, and lose nothing."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.models import ArchivedJob, Host, Worker
from django_jobqueue.store import host_rows
from django_jobqueue.store.connection import DjangoDatabase
from tests.crashes.seen import ends, starts
from tests.crashes.test_exporter import ANY_PORT, get, url
from tests.sample import jobs
from tests.support.rows import queued
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]


def the_host() -> Host:
    return Host.objects.get(stopped_at=None)


def applied(run: RunWorkers, **columns: Any) -> Host:
    """Wait until the host has dealt with the last request, and its row has these
    values."""

    def host() -> Host | None:
        row = the_host()
        is_done = row.desired.get("number") == row.applied.get("number")
        is_so = all(getattr(row, name) == value for name, value in columns.items())
        return row if is_done and is_so else None

    return eventually(host, within=60, what=lambda: run.output)


def scaled(run: RunWorkers, **plan: Any) -> Host:
    operations.scale_hosts(the_host().pk, **plan)
    return applied(run, **plan)


def asked(run: RunWorkers, what: str, **columns: Any) -> Host:
    operations.ask_hosts(the_host().pk, what)
    return applied(run, **columns)


def asked_to_stop(run: RunWorkers) -> int:
    operations.ask_hosts(the_host().pk, "stop")
    code = run.wait()
    assert Host.objects.get().state == "stopped"
    return code


def test_each_job_runs_once_while_a_host_is_scaled_up_parked_and_scaled_again(
    runworkers: Run, journal: str
) -> None:
    def enqueue(numbers: range) -> None:
        jobs.write.enqueue_many(
            {"journal": journal, "word": str(n), "seconds": 0.02} for n in numbers
        )

    enqueue(range(150))
    run = runworkers("--processes", "1", "--threads", "4", constants=BRISK)
    run.started()
    scaled(run, processes=3)
    assert len(run.started(3)) == 3
    parked = scaled(run, processes=0)
    assert parked.state == "parked"
    eventually(lambda: not run.workers(), what=lambda: run.output)
    assert run.process.poll() is None
    before = ArchivedJob.objects.count()
    enqueue(range(150, 180))
    scaled(run, processes=2, threads=2, async_slots=5)
    assert list(
        Worker.objects.filter(state="running").values_list("threads", "async_slots")
    ) == [(2, 5), (2, 5)]
    eventually(
        lambda: ArchivedJob.objects.count() == 180, within=60, what=lambda: run.output
    )
    assert before <= 150
    assert ends(journal) == {str(n): 1 for n in range(180)}
    assert set(ArchivedJob.objects.values_list("status", "attempts", "crashes")) == {
        ("succeeded", 1, 0)
    }
    assert run.stop() == 0
    row = Host.objects.get()
    assert (row.state, row.error) == ("stopped", "")


def check_that_refused_plans_change_nothing(run: RunWorkers) -> None:
    """Operations refuse to ask for them."""
    for plan, problem in [
        ({"threads": 5_000}, "threads must be a whole number from 0 to 1,000"),
        ({"processes": "many"}, "processes must be a whole number from 0 to 100"),
        ({"threads": 0, "async_slots": 0}, "With 0 threads and 0 async slots"),
        ({"queues": "mail"}, "queues must be a list of names"),
    ]:
        Host.objects.update(desired={})
        host_rows.ask(DjangoDatabase(), [the_host().pk], request=plan)
        eventually(lambda p=problem: p in the_host().error, what=lambda: run.output)
    row = scaled(run, processes=2, threads=1, async_slots=100, queues=["default"])
    assert row.error == ""


def test_other_slots_and_queues_come_with_successors_that_start_first(
    runworkers: Run, journal: str
) -> None:
    run = runworkers(
        *("--processes", "2", "--threads", "1", "--queues", "default"), constants=BRISK
    )
    first = set(run.started(2))
    check_that_refused_plans_change_nothing(run)
    assert set(run.workers()) == first
    jobs.await_leave.enqueue(journal, "long")
    eventually(lambda: starts(journal))
    jobs.write.using(queue="mail").enqueue(journal, "mail")
    row = scaled(run, threads=2, queues=["default", "mail"])
    assert (row.processes, row.async_slots) == (2, 100)
    eventually(lambda: ends(journal)["mail"], what=lambda: run.output)
    eventually(lambda: not set(run.workers()) & first, what=lambda: run.output)
    jobs.give_leave(journal, "long")
    eventually(lambda: ends(journal)["long"])
    eventually(lambda: not any(map(jobs.is_running, first)), what=lambda: run.output)
    assert set(ArchivedJob.objects.values_list("attempts", "crashes")) == {(1, 0)}
    first_ones = Worker.objects.filter(threads=1)
    eventually(lambda: not first_ones.filter(stopped_at=None).exists())
    # Each of the first ended only when another worker of the new plan had registered.
    new = list(Worker.objects.filter(threads=2).order_by("started_at"))
    old = list(first_ones.order_by("stopped_at"))
    assert all(n.started_at < o.stopped_at for n, o in zip(new, old, strict=True))


def test_a_host_that_drains_its_queues_obeys_operators_and_then_goes_on(
    runworkers: Run, journal: str
) -> None:
    """With --drain it would end, were it not drained: jobs are left."""
    jobs.write.enqueue_many(
        {"journal": journal, "word": str(n), "seconds": 0.05} for n in range(60)
    )
    run = runworkers("--drain", "--threads", "1", constants=BRISK)
    run.started()
    scaled(run, threads=2)
    asked(run, "drain", state="draining")
    eventually(lambda: not queued(status="running"))
    left = queued(status="queued")
    assert left
    assert run.process.poll() is None
    assert queued() == left
    asked(run, "resume", state="running")
    assert run.wait() == 0
    words = Counter(words[1] for words in jobs.notes(journal) if words[0] == "end")
    assert words == {str(n): 1 for n in range(60)}
    assert "Operators' request to this host: threads 2\n" in run.output
    assert "Operators' request to this host: drain\n" in run.output


@pytest.mark.parametrize("drains", some_slow([True, False], [False]))
def test_a_stop_lets_running_jobs_end_and_a_signal_after_it_is_the_first_one(
    runworkers: Run, journal: str, drains: bool
) -> None:
    run = runworkers("--threads", "1", *["--drain"] * drains, constants=BRISK)
    jobs.await_leave.enqueue(journal, "long")
    eventually(lambda: starts(journal))
    jobs.write.enqueue(journal, "left")
    operations.ask_hosts(the_host().pk, "stop")
    eventually(lambda: "An operator stops this host" in run.output)
    eventually(lambda: Worker.objects.get().state == "draining")  # it was told, too
    if not drains:
        run.signal(signal.SIGTERM)
        eventually(lambda: "SIGTERM: stopping" in run.output)
    jobs.give_leave(journal, "long")
    assert run.wait() == 0
    assert jobs.notes(journal) == [["start", "long"], ["end", "long"]]
    assert [job.status for job in queued()] == ["queued"]
    assert Host.objects.get().state == "stopped"


CODE = """
from django_jobqueue import job

@job(name="sample.say_version")
def say(journal: str) -> None:
    with open(journal, "a") as file:
        file.write("VERSION\\n")
"""


@pytest.mark.parametrize(
    "fails_first",
    [False, pytest.param(True, marks=pytest.mark.slow("a further start of Python"))],
)
def test_new_code_is_loaded_and_what_does_not_start_leaves_the_old_code_at_work(
    runworkers: Run, tmp_path: Path, journal: str, fails_first: bool
) -> None:
    """The same process goes on, serves metrics at the port that it had, and stays
    drained until it is resumed."""
    module = tmp_path / "code.py"
    module.write_text(CODE.replace("VERSION", "first"))
    run = runworkers(
        *("--threads", "1", *ANY_PORT), constants=BRISK, SAMPLE_CODE=str(module)
    )
    (worker,) = run.started()
    port, pid = url(run), run.process.pid
    words: list[str] = []

    def say() -> None:
        operations.enqueue("sample.say_version", {"journal": journal})

    def is_said(*more: str) -> bool:
        if Path(journal).read_text().split() != [*words, *more]:
            return False
        words.extend(more)
        return True

    Path(journal).touch()
    say()
    eventually(lambda: is_said("first"), what=lambda: run.output)
    if fails_first:
        module.write_text(CODE + "import no_such_module\n")
        row = asked(run, "restart", state="running")
        assert "No module named 'no_such_module'" in row.error
        assert "restart" not in row.applied
        assert run.workers() == [worker]
        say()
        eventually(lambda: is_said("first"), what=lambda: run.output)

    module.write_text(CODE.replace("VERSION", "second"))
    asked(run, "drain", state="draining")
    say()
    before = the_host()
    row = asked(run, "restart", state="draining")
    assert (row.pk, row.error) == (before.pk, "")
    assert row.started_at > before.started_at
    assert row.applied["restart"] == row.desired["restart"]
    assert (run.process.pid, run.process.poll()) == (pid, None)
    assert is_said(), run.output
    assert run.output.count(f"INFO Metrics at {port}/metrics") == 2
    assert get(run, "/healthz").status == 200
    asked(run, "resume", state="running")
    eventually(lambda: is_said("second"), what=lambda: run.output)
    assert run.workers() != [worker]
    assert asked_to_stop(run) == 0


CONTAINER = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")


@pytest.mark.slow("a restart starts Python twice")
def test_the_first_process_of_a_container_is_restarted(
    runworkers: Run, journal: str
) -> None:
    """It has no parent, and is that of all that lost theirs."""
    if subprocess.run(
        [*CONTAINER, "true"], capture_output=True, check=False
    ).returncode:
        pytest.skip("needs the right to make a container")
    run = runworkers("--threads", "1", within=CONTAINER)
    eventually(
        lambda: Worker.objects.filter(state="running"),
        within=60,
        what=lambda: run.output,
    )
    before = the_host()
    assert before.name.endswith(":1")
    restarted = asked(run, "restart", state="running")
    assert (restarted.pk, restarted.error) == (before.pk, "")
    assert restarted.started_at > before.started_at
    jobs.write.enqueue(journal, "after")
    eventually(lambda: ends(journal)["after"], what=lambda: run.output)
    assert asked_to_stop(run) == 0
