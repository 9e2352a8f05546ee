"""``jobqueue bench``: what it measures, and that it leaves nothing."""

from __future__ import annotations

import io
import signal
from typing import Any

import pytest

from django_jobqueue.contrib.console import bench_command
from django_jobqueue.contrib.console.bench_command import (
    LABELS,
    NAME,
    REFERENCE,
    Figures,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, Rollup, Total
from django_jobqueue.store.connection import OwnConnection
from tests.commands.conftest import Manage, Terminal, jobqueue, refusal
from tests.store.rows import ADD, job_type, make, register
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
FEW = "bench --jobs 60 --threads 2 --yes"


def rows() -> dict[str, int]:
    by_type = {"job_type": NAME}
    return {
        "queued": QueuedJob.objects.filter(**by_type).count(),
        "archived": ArchivedJob.objects.filter(**by_type).count(),
        "types": JobType.objects.filter(pk=NAME).count(),
        "rollups": Rollup.objects.filter(**by_type).count(),
        "totals": Total.objects.filter(**by_type).count(),
    }


def leave_a_job(**columns: Any) -> None:
    job_type(NAME)
    make(NAME, queue="jobqueue.bench.1", **columns)


def test_it_measures_everything_and_leaves_nothing(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_command, "PICKUPS", 3)
    other = make(ADD)
    measured = jobqueue(f"{FEW} --format json").json

    assert (measured["jobs"], measured["threads"]) == (60, 2)
    names = list(Figures._fields)
    for who in ("here", "benchmark_machine"):
        assert list(measured[who]) == names
        assert all(value > 0 for value in measured[who].values())
    assert measured["here"]["pickup"] <= measured["here"]["pickup_p95"]
    assert not any(rows().values())
    assert NAME not in {declaration.name for declaration in registry}
    assert QueuedJob.objects.get().pk == other


def test_people_see_both_machines_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_command, "measure", lambda *arguments: REFERENCE)
    head, *lines = jobqueue(FEW).out.splitlines()
    assert head.split() == ["Measured", "Here", "Benchmark", "machine"]
    assert [line.split("  ")[0] for line in lines] == list(LABELS.values())


@pytest.mark.parametrize(
    ("error", "message"),
    [(KeyboardInterrupt(), "Interrupted."), (TimeoutError("Too long."), "Too long.")],
)
def test_what_ends_it_early_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, message: str
) -> None:
    def interrupted(*arguments: Any) -> Any:
        leave_a_job()
        raise error

    monkeypatch.setattr(bench_command, "measure", interrupted)
    assert refusal(FEW) == message
    assert not any(rows().values())


@pytest.mark.processes
def test_a_signal_ends_a_process_that_cleans_up(manage: Manage) -> None:
    started = manage("jobqueue bench --jobs 1000000 --yes")
    eventually(lambda: QueuedJob.objects.filter(job_type=NAME).exists())
    started.process.send_signal(signal.SIGTERM)
    assert started.wait() == 130
    assert not any(rows().values())


def test_what_a_killed_one_left_is_deleted_when_asked() -> None:
    leave_a_job()
    assert "jobqueue bench --clean" in refusal(FEW)
    jobqueue("bench --clean")
    assert not any(rows().values())


def test_jobs_that_run_are_left_and_told(own: OwnConnection) -> None:
    leave_a_job(status="running", worker_id=register(own))
    assert "Some jobs run" in jobqueue("bench --clean").err
    assert rows()["queued"] == 1


def test_where_debug_is_off_somebody_must_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert refusal("bench --jobs 60") == "No terminal to confirm on; pass --yes."
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert refusal("bench --jobs 60") == "Nothing was measured."
    assert not any(rows().values())
