"""Real hosts do what operators ask of them, under load, and lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.models import ArchivedJob, Host, Worker
from tests.sample import jobs
from tests.support.rows import queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]


def the_host() -> Host:
    """The row of the one host that there is."""
    return Host.objects.get(stopped_at=None)


def applied(run: RunWorkers, **columns: Any) -> Host:
    """Wait until the host has dealt with the last request, and its row has these
    values."""

    def host() -> Host | None:
        row = the_host()
        is_done = row.desired.get("number") == row.applied.get("number")
        is_so = all(getattr(row, name) == value for name, value in columns.items())
        return row if is_done and is_so else None

    return eventually(host, within=60, what=lambda: f"{_row()}\n{run.output}")


def _row() -> Any:
    return list(Host.objects.values())


def scaled(run: RunWorkers, **plan: Any) -> Host:
    """Scale the host, and wait until it is so."""
    operations.scale_hosts(the_host().pk, **plan)
    return applied(run, **plan)


def asked(run: RunWorkers, what: str, **columns: Any) -> Host:
    """Ask the host for this, and wait until it is so."""
    operations.ask_hosts(the_host().pk, what)
    return applied(run, **columns)


def test_each_job_runs_once_while_a_host_is_scaled_up_parked_and_scaled_again(
    runworkers: Run, journal: str
) -> None:
    def enqueue(numbers: range) -> None:
        jobs.write.enqueue_many(
            {"journal": journal, "word": str(n), "seconds": 0.02} for n in numbers
        )

    enqueue(range(900))
    run = runworkers("--processes", "1", "--threads", "4")
    run.started()
    scaled(run, processes=4)
    assert len(run.started(4)) == 4
    parked = scaled(run, processes=0)
    assert parked.state == "parked"
    eventually(lambda: not run.workers(), what=lambda: run.output)
    assert run.process.poll() is None
    before = ArchivedJob.objects.count()
    enqueue(range(900, 1_000))
    scaled(run, processes=2, threads=2, async_slots=5)
    assert list(
        Worker.objects.filter(state="running").values_list("threads", "async_slots")
    ) == [(2, 5), (2, 5)]
    eventually(
        lambda: ArchivedJob.objects.count() == 1_000, within=60, what=lambda: run.output
    )
    assert before <= 900
    ends = Counter(words[1] for words in jobs.notes(journal) if words[0] == "end")
    assert ends == {str(n): 1 for n in range(1_000)}
    assert set(ArchivedJob.objects.values_list("status", "attempts", "crashes")) == {
        ("succeeded", 1, 0)
    }
    assert run.stop() == 0
    row = Host.objects.get()
    assert (row.state, row.error) == ("stopped", "")


def test_other_slots_and_queues_come_with_successors_that_start_first(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--processes", "2", "--threads", "1", "--queues", "default")
    first = set(run.started(2))
    jobs.write.enqueue(journal, "long", seconds=6.0)
    eventually(lambda: jobs.notes(journal))
    jobs.write.using(queue="mail").enqueue(journal, "mail")
    row = scaled(run, threads=2, queues=["default", "mail"])
    assert (row.processes, row.async_slots) == (2, 100)
    eventually(lambda: ["end", "mail"] in jobs.notes(journal), what=lambda: run.output)
    eventually(lambda: not set(run.workers()) & first, what=lambda: run.output)
    eventually(lambda: ["end", "long"] in jobs.notes(journal))
    eventually(lambda: not any(map(jobs.is_running, first)), what=lambda: run.output)
    assert set(ArchivedJob.objects.values_list("attempts", "crashes")) == {(1, 0)}
    first_ones = Worker.objects.filter(threads=1)
    eventually(lambda: not first_ones.filter(stopped_at=None).exists())
    # Each of the first ended only when another worker of the new plan had registered.
    new = list(Worker.objects.filter(threads=2).order_by("started_at"))
    old = list(first_ones.order_by("stopped_at"))
    assert all(n.started_at < o.stopped_at for n, o in zip(new, old, strict=True))
    assert run.stop() == 0


def test_a_drained_host_claims_nothing_until_it_is_resumed_even_after_a_restart(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1")
    run.started()
    asked(run, "drain", state="draining")
    jobs.write.enqueue(journal, "waits")
    pid = run.process.pid
    before = the_host()
    restarted = asked(run, "restart", state="draining")
    assert (restarted.pk, restarted.error) == (before.pk, "")
    assert restarted.started_at > before.started_at
    assert (run.process.pid, run.process.poll()) == (pid, None)
    assert not jobs.notes(journal), run.output
    asked(run, "resume", state="running")
    eventually(lambda: ["end", "waits"] in jobs.notes(journal), what=lambda: run.output)
    assert asked_to_stop(run) == 0


def test_a_host_that_drains_its_queues_obeys_operators_and_then_goes_on(
    runworkers: Run, journal: str
) -> None:
    """With --drain it would end, were it not drained: jobs are left."""
    jobs.write.enqueue_many(
        {"journal": journal, "word": str(n), "seconds": 0.1} for n in range(80)
    )
    run = runworkers("--drain", "--threads", "1")
    run.started()
    scaled(run, threads=2)
    asked(run, "drain", state="draining")
    left = eventually(lambda: [job.id for job in queued(status="queued")])
    asked(run, "restart", state="draining")
    assert run.process.poll() is None
    assert {job.id for job in queued()} <= set(left)
    asked(run, "resume", state="running")
    assert run.wait() == 0
    words = Counter(words[1] for words in jobs.notes(journal) if words[0] == "end")
    assert words == {str(n): 1 for n in range(80)}
    assert "Operators ask this host: threads 2\n" in run.output
    assert "Operators ask this host: drain\n" in run.output


def test_a_host_that_drains_its_queues_can_be_stopped_before(
    runworkers: Run, journal: str
) -> None:
    jobs.write.enqueue_many(
        {"journal": journal, "word": str(n), "seconds": 0.2} for n in range(200)
    )
    run = runworkers("--drain", "--threads", "1")
    eventually(lambda: jobs.notes(journal), what=lambda: run.output)
    assert asked_to_stop(run) == 0
    assert queued(status="queued")
    assert not queued(status="running")


def asked_to_stop(run: RunWorkers) -> int:
    """Ask the host to stop; returns its exit code."""
    operations.ask_hosts(the_host().pk, "stop")
    code = run.wait()
    assert Host.objects.get().state == "stopped"
    return code


def test_code_that_does_not_start_leaves_the_old_code_at_work_and_new_code_is_loaded(
    runworkers: Run, tmp_path: Path, journal: str
) -> None:
    folder = tmp_path / "code"
    app = folder / "restarted"
    app.mkdir(parents=True)
    (app / "__init__.py").touch()
    module = app / "jobs.py"
    code = (
        "from django_jobqueue import job\n\n\n"
        "@job\n"
        "def say(journal: str) -> None:\n"
        "    with open(journal, 'a') as file:\n"
        "        file.write('WORD\\n')\n"
    )
    module.write_text(code.replace("WORD", "first version"))
    settings = folder / "restarted_settings.py"
    settings.write_text(
        "from tests.settings import *\n\n"
        "INSTALLED_APPS = [*INSTALLED_APPS, 'restarted']\n"
    )
    paths = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    run = runworkers(
        "--threads",
        "1",
        PYTHONPATH=paths,
        DJANGO_SETTINGS_MODULE="restarted_settings",
        PYTHONDONTWRITEBYTECODE="1",
    )
    (worker,) = eventually(run.workers, within=60, what=lambda: run.output)

    def say() -> list[str]:
        path, count = Path(journal), ArchivedJob.objects.count()
        operations.enqueue("restarted.say", {"journal": journal})
        eventually(lambda: ArchivedJob.objects.count() > count, what=lambda: run.output)
        return path.read_text().splitlines()

    assert say() == ["first version"]
    module.write_text(code + "\nimport no_such_module\n")
    row = asked(run, "restart", state="running")
    assert "No module named 'no_such_module'" in row.error
    assert "restart" not in row.applied
    assert run.workers() == [worker]
    assert say() == ["first version"] * 2
    module.write_text(code.replace("WORD", "second version"))
    row = asked(run, "restart", state="running")
    assert row.error == ""
    assert row.applied["restart"] == row.desired["restart"]
    assert say() == ["first version"] * 2 + ["second version"]
    assert run.workers() != [worker]
    assert asked_to_stop(run) == 0


CONTAINER = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")


def test_the_first_process_of_a_container_is_restarted(
    runworkers: Run, journal: str
) -> None:
    """It has no parent, and is that of all that lost theirs."""
    if subprocess.run(
        [*CONTAINER, "true"], capture_output=True, check=False
    ).returncode:
        pytest.skip("needs the right to make a container")
    run = runworkers("--threads", "1", within=CONTAINER)
    eventually(lambda: Worker.objects.filter(state="running"), what=lambda: run.output)
    before = the_host()
    assert before.name.endswith(":1")
    restarted = asked(run, "restart", state="running")
    assert (restarted.pk, restarted.error) == (before.pk, "")
    assert restarted.started_at > before.started_at
    jobs.write.enqueue(journal, "after")
    eventually(lambda: ["end", "after"] in jobs.notes(journal), what=lambda: run.output)
    assert asked_to_stop(run) == 0


def test_a_stop_lets_running_jobs_end_and_a_signal_after_it_is_the_first_one(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1")
    run.started()
    jobs.write.enqueue(journal, "long", seconds=3.0)
    eventually(lambda: jobs.notes(journal))
    operations.ask_hosts(the_host().pk, "stop")
    eventually(lambda: "An operator stops this host" in run.output)
    run.signal(signal.SIGTERM)
    assert run.wait() == 0
    assert jobs.notes(journal) == [["start", "long"], ["end", "long"]]


def test_a_plan_written_by_hand_is_refused_by_the_host(runworkers: Run) -> None:
    run = runworkers("--threads", "1")
    (worker,) = run.started()
    for number, (plan, problem) in enumerate(
        [
            ({"threads": 5_000}, "threads must be a whole number from 0 to 1,000"),
            ({"processes": "many"}, "processes must be a whole number from 0 to 100"),
            ({"threads": 0, "async_slots": 0}, "With 0 threads and 0 async slots"),
            ({"queues": "mail"}, "queues must be a list of names"),
        ],
        start=1,
    ):
        Host.objects.update(desired={**plan, "number": number})
        eventually(lambda p=problem: p in the_host().error, what=lambda: run.output)
    row = scaled(run, processes=1, threads=1, async_slots=100, queues=None)
    assert row.error == ""
    assert run.workers() == [worker]
    assert run.stop() == 0
