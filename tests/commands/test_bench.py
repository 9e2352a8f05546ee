"""``jobqueue bench``: what it measures, and that it leaves nothing."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
from django.core.management.base import CommandError

from django_jobqueue.domain.registry import registry
from django_jobqueue.management.jobqueue import bench, bench_run
from django_jobqueue.management.jobqueue.bench_run import NAME, Figures
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, Rollup, Total
from django_jobqueue.store.connection import OwnConnection
from tests.commands.conftest import Terminal, jobqueue
from tests.store.rows import ADD, job_type, make, register
from tests.support.commands import worker_environment
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
FEW = ("bench", "--jobs", "60", "--threads", "2", "--yes")


@pytest.fixture(autouse=True)
def few_pickups(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a test is short."""
    monkeypatch.setattr(bench_run, "PICKUPS", 3)


def rows() -> dict[str, int]:
    """How many rows there are of its jobs."""
    by_type = {"job_type": NAME}
    return {
        "queued": QueuedJob.objects.filter(**by_type).count(),
        "archived": ArchivedJob.objects.filter(**by_type).count(),
        "types": JobType.objects.filter(pk=NAME).count(),
        "rollups": Rollup.objects.filter(**by_type).count(),
        "totals": Total.objects.filter(**by_type).count(),
    }


def test_it_measures_everything_and_leaves_nothing(own: OwnConnection) -> None:
    other = make(ADD)
    measured = jobqueue(*FEW, "--format", "json").json

    assert (measured["jobs"], measured["threads"]) == (60, 2)
    names = [field.name for field in fields(Figures)]
    for who in ("here", "benchmark_machine"):
        assert list(measured[who]) == names
        assert all(value > 0 for value in measured[who].values())
    assert measured["here"]["pickup"] <= measured["here"]["pickup_p95"]
    assert not any(rows().values())
    assert NAME not in {declaration.name for declaration in registry}
    assert QueuedJob.objects.get().pk == other


def test_people_see_both_machines_in_a_table(own: OwnConnection) -> None:
    out = jobqueue(*FEW).out
    lines = out.splitlines()
    assert lines[0].split() == ["Measured", "Here", "Benchmark", "machine"]
    assert [line.split("  ")[0] for line in lines[1:]] == list(bench.LABELS.values())


@pytest.mark.parametrize(
    ("error", "message"),
    [(KeyboardInterrupt(), "Interrupted."), (TimeoutError("Too long."), "Too long.")],
)
def test_what_ends_it_early_leaves_nothing(
    own: OwnConnection,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    message: str,
) -> None:
    def interrupted(*arguments: Any) -> Any:
        assert rows()["archived"]
        raise error

    monkeypatch.setattr(bench_run, "_pickups", interrupted)
    with pytest.raises(CommandError, match=message):
        jobqueue(*FEW)
    assert not any(rows().values())


def test_a_signal_ends_a_process_that_cleans_up(own: OwnConnection) -> None:
    command = [sys.executable, "-m", "django", "jobqueue", *FEW[:2], "1000000"]
    process = subprocess.Popen(
        [*command, "--yes"],
        env=worker_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        eventually(lambda: QueuedJob.objects.filter(job_type=NAME).exists())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode not in (0, -signal.SIGTERM)
    assert not any(rows().values())


def test_what_a_killed_one_left_is_deleted_when_asked(own: OwnConnection) -> None:
    job_type(NAME)
    make(NAME, queue="jobqueue.bench.1")
    with pytest.raises(CommandError, match="jobqueue bench --clean"):
        jobqueue(*FEW)
    jobqueue("bench", "--clean")
    assert not any(rows().values())


def test_jobs_that_run_are_left_and_told(own: OwnConnection) -> None:
    holder = register(own)
    job_type(NAME)
    make(NAME, queue="jobqueue.bench.1", status="running", worker_id=holder)
    assert "Some jobs run" in jobqueue("bench", "--clean").err
    assert rows()["queued"] == 1


def test_where_debug_is_off_somebody_must_agree(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CommandError, match="Nobody is here to confirm: say --yes."):
        jobqueue("bench", "--jobs", "60")
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    with pytest.raises(CommandError, match="Nothing was measured."):
        jobqueue("bench", "--jobs", "60")
    assert not any(rows().values())
