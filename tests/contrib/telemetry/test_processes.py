"""Tracing and Sentry with real worker processes: what leaves them, and what a process
that is killed leaves to another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import Failure
from tests.contrib.telemetry.conftest import Traced
from tests.crashes.seen import all_archived
from tests.crashes.test_hangs import IMPATIENT
from tests.sample import jobs
from tests.sample.telemetry import lines
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

Run = Callable[..., RunWorkers]
THREADS = ("--processes", "1", "--threads", "2", "--async-slots", "2")


def test_one_trace_crosses_processes_also_those_that_are_killed(
    traced: Traced, runworkers: Run, tmp_path: Path, journal: str
) -> None:
    """From the request to the follower; whoever rescues a job makes its span."""
    path = str(tmp_path / "spans")
    with traced.tracer.start_as_current_span("POST /checkout"):
        jobs.followed.enqueue("error")
    run = runworkers(*THREADS, SAMPLE_SPANS=path, constants=BRISK)
    eventually(all_archived(2), what=lambda: run.output)
    jobs.die.enqueue(journal)
    eventually(all_archived(3), what=lambda: run.output)
    assert run.stop() == 0
    spans, crashes = lines(path)[:3], lines(path)[3:]
    trace = traced.named("POST /checkout").get_span_context().trace_id
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{trace:032x}"}
    assert [(s["name"], s["attributes"]["jobqueue.outcome"]) for s in spans] == [
        ("process tests.sample.followed", "retried"),
        ("process tests.sample.followed", "failed"),
        ("process tests.sample.report", "succeeded"),
    ]
    assert [span["attributes"]["jobqueue.crashes"] for span in crashes] == [1, 2, 3]
    for span in crashes:
        assert span["attributes"]["jobqueue.outcome"] == "crashed"
        assert span["status"]["status_code"] == "ERROR"
        assert "SIGKILL" in span["status"]["description"]
        parent = traced.spans[-1].get_span_context().span_id
        assert span["parent_id"] == f"0x{parent:016x}"


def test_spans_that_wait_are_sent_when_a_process_ends(
    traced: Traced, runworkers: Run, tmp_path: Path
) -> None:
    """And the supervisor warns of threads before it forks."""
    path = str(tmp_path / "spans")
    jobs.add.enqueue(1)
    jobs.aadd.enqueue(1)
    env = {"SAMPLE_SPANS": path, "SAMPLE_BATCHED": "1", "SAMPLE_THREAD": "exporter"}
    run = runworkers(*THREADS, "--drain", **env)
    assert run.wait() == 0, run.output
    sent = lines(path)
    names = {span["name"] for span in sent}
    assert names == {"process tests.sample.add", "process tests.sample.aadd"}
    traces = {f"0x{s.get_span_context().trace_id:032x}" for s in traced.spans}
    assert {span["context"]["trace_id"] for span in sent} == traces
    (line,) = [line for line in run.output.splitlines() if "WARNING" in line]
    assert "its process has other threads: exporter." in line


@pytest.mark.parametrize(
    "is_stuck", [False, pytest.param(True, marks=pytest.mark.slow("a third hang"))]
)
def test_a_job_that_its_process_does_not_end_well_is_one_event(
    runworkers: Run, tmp_path: Path, journal: str, is_stuck: bool
) -> None:
    """It kills its process, does not stop, or keeps the interpreter's lock."""
    path = str(tmp_path / "events")
    flags = (*THREADS, "--cancel-grace", "0.1", "--grace", "0.2")
    constants = IMPATIENT if is_stuck else BRISK
    run = runworkers(*flags, SAMPLE_EVENTS=path, constants=constants)
    if is_stuck:
        jobs.hold_lock.using(max_attempts=1, timeout=0.3).enqueue(journal)
    else:
        jobs.die.enqueue(journal)
        eventually(all_archived(1), within=60, what=lambda: run.output)
        jobs.hang.using(max_attempts=1).enqueue(journal)
    eventually(all_archived(2 - is_stuck), within=60, what=lambda: run.output)
    assert run.stop() == 0
    *crashes, timeout = [event for event in lines(path) if "exception" in event]
    assert timeout["tags"]["job_type"] in (
        "tests.sample.hang",
        "tests.sample.hold_lock",
    )
    assert timeout["exception"]["values"][0]["type"].endswith("JobTimeout")
    if is_stuck:
        assert crashes == []
        return
    (crash,) = crashes
    (exception,) = crash["exception"]["values"]
    assert exception["type"] == "jobqueue.PoisonJob"
    assert "SIGKILL" in exception["value"]
    assert exception["mechanism"] == {"type": "django_jobqueue", "handled": False}
    assert crash["transaction"] == "tests.sample.die"
    assert crash["fingerprint"][:3] == ["jobqueue", "crash", "tests.sample.die"]
    assert crash["tags"]["job_type"] == "tests.sample.die"
    assert crash["tags"]["queue"] == "default"
    assert crash["contexts"]["job"]["crashes"] == 3
    assert Failure.objects.filter(job_type="tests.sample.die").count() == 3


def test_the_signal_is_sent_in_each_process_before_it_does_anything(
    runworkers: Run, tmp_path: Path, journal: str
) -> None:
    """And the supervisor warns of nothing where there is no thread."""
    env = {"SAMPLE_STARTS": journal, "SAMPLE_EVENTS": str(tmp_path / "events")}
    run = runworkers("--processes", "2", "--drain", **env)
    assert run.wait() == 0
    assert "WARNING" not in run.output
    started = [words for words in jobs.notes(journal) if words[0] == "started"]
    assert sorted(started) == [
        ["started", "maintenance", "1"],
        ["started", "worker", "1"],
        ["started", "worker", "1"],
    ]
