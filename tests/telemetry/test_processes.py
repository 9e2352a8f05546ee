"""Tracing and Sentry with real worker processes: what leaves them, and what a process
that is killed leaves to another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from django_jobqueue.models import Failure
from tests.sample import jobs
from tests.sample.telemetry import lines
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually
from tests.telemetry.conftest import Traced

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

Run = Callable[..., RunWorkers]
THREADS = ("--processes", "1", "--threads", "2", "--async-slots", "2")


def all_archived(count: int) -> Callable[[], bool]:
    """Whether so many jobs are over and none is left."""
    return lambda: len(archived()) == count and not queued()


def test_one_trace_crosses_processes_from_the_request_to_the_follower(
    traced: Traced, runworkers: Run, tmp_path: Path
) -> None:
    path = str(tmp_path / "spans")
    with traced.tracer.start_as_current_span("POST /checkout"):
        jobs.followed.enqueue("error")
    run = runworkers(*THREADS, SAMPLE_SPANS=path)
    eventually(all_archived(2), what=lambda: run.output)
    assert run.stop() == 0
    spans = lines(path)
    trace = traced.named("POST /checkout").get_span_context().trace_id
    assert {span["context"]["trace_id"] for span in spans} == {f"0x{trace:032x}"}
    assert [(s["name"], s["attributes"]["jobqueue.outcome"]) for s in spans] == [
        ("process tests.sample.followed", "retried"),
        ("process tests.sample.followed", "failed"),
        ("process tests.sample.report", "succeeded"),
    ]


def test_a_killed_process_leaves_a_span_to_whoever_rescues(
    traced: Traced, runworkers: Run, tmp_path: Path, journal: str
) -> None:
    path = str(tmp_path / "spans")
    jobs.die.enqueue(journal)
    run = runworkers(*THREADS, SAMPLE_SPANS=path)
    eventually(all_archived(1), what=lambda: run.output)
    assert run.stop() == 0
    crashes = lines(path)
    assert [span["attributes"]["jobqueue.crashes"] for span in crashes] == [1, 2, 3]
    for span in crashes:
        assert span["attributes"]["jobqueue.outcome"] == "crashed"
        assert span["status"]["status_code"] == "ERROR"
        assert "SIGKILL" in span["status"]["description"]
        parent = traced.spans[0].get_span_context().span_id
        assert span["parent_id"] == f"0x{parent:016x}"


@contextmanager
def otlp_receiver() -> Iterator[tuple[str, list[Any]]]:
    """A collector on this host: its address, and the spans that it got."""
    received: list[Any] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    received.extend((scope, span) for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_spans_that_wait_are_sent_over_otlp_when_a_process_ends(
    traced: Traced, runworkers: Run
) -> None:
    with otlp_receiver() as (address, received):
        jobs.add.enqueue(1)
        jobs.aadd.enqueue(1)
        run = runworkers(*THREADS, "--drain", SAMPLE_OTLP=address)
        assert run.wait() == 0, run.output
    names = {span.name for _, span in received}
    assert names == {"process tests.sample.add", "process tests.sample.aadd"}
    traces = {span.get_span_context().trace_id for span in traced.spans}
    assert {int.from_bytes(span.trace_id, "big") for _, span in received} == traces
    assert {scope.scope.name for scope, _ in received} == {"django_jobqueue"}


def test_a_job_that_kills_its_process_is_one_event_of_the_process_that_rescues(
    runworkers: Run, tmp_path: Path, journal: str
) -> None:
    path = str(tmp_path / "events")
    jobs.die.enqueue(journal)
    run = runworkers(*THREADS, SAMPLE_EVENTS=path)
    eventually(all_archived(1), what=lambda: run.output)
    assert run.stop() == 0
    events = lines(path)
    assert len(events) == 1, events
    event = events[0]
    (exception,) = event["exception"]["values"]
    assert exception["type"] == "jobqueue.WorkerLost"
    assert "SIGKILL" in exception["value"]
    assert exception["mechanism"] == {"type": "django_jobqueue", "handled": False}
    assert event["transaction"] == "tests.sample.die"
    assert event["fingerprint"][:3] == ["jobqueue", "crash", "tests.sample.die"]
    assert event["tags"]["job_type"] == "tests.sample.die"
    assert event["tags"]["queue"] == "default"
    assert event["contexts"]["job"]["crashes"] == 3
    assert Failure.objects.count() == 3


def test_a_handler_that_does_not_stop_is_one_event(
    runworkers: Run, tmp_path: Path, journal: str
) -> None:
    path = str(tmp_path / "events")
    jobs.hang.using(max_attempts=1).enqueue(journal)
    run = runworkers(*THREADS, SAMPLE_EVENTS=path)
    eventually(all_archived(1), what=lambda: run.output)
    assert run.stop() == 0
    sent = [event for event in lines(path) if "exception" in event]
    assert len(sent) == 1, (lines(path), run.output)
    (event,) = sent
    assert event["transaction"] == "tests.sample.hang"
    assert event["exception"]["values"][0]["type"].endswith("JobTimeout")


def test_a_handler_that_keeps_the_interpreters_lock_is_one_event(
    runworkers: Run, tmp_path: Path, journal: str
) -> None:
    path = str(tmp_path / "events")
    jobs.hold_lock.using(max_attempts=1).enqueue(journal)
    run = runworkers(*THREADS, SAMPLE_EVENTS=path)
    eventually(all_archived(1), within=60, what=lambda: run.output)
    assert run.stop() == 0
    (event,) = lines(path)
    (exception,) = event["exception"]["values"]
    assert exception["type"].endswith("JobTimeout")
    assert event["tags"]["job_type"] == "tests.sample.hold_lock"


def test_the_supervisor_warns_of_threads_before_it_forks(runworkers: Run) -> None:
    run = runworkers(*THREADS, "--drain", SAMPLE_THREAD="exporter")
    assert run.wait() == 0
    (line,) = [line for line in run.output.splitlines() if "WARNING" in line]
    assert "its process has other threads: exporter." in line


def test_without_other_threads_the_supervisor_warns_of_nothing(
    runworkers: Run, tmp_path: Path
) -> None:
    run = runworkers(*THREADS, "--drain", SAMPLE_EVENTS=str(tmp_path / "events"))
    assert run.wait() == 0
    assert "WARNING" not in run.output


def test_the_signal_is_sent_in_each_process_before_it_does_anything(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--processes", "2", "--drain", SAMPLE_STARTS=journal)
    assert run.wait() == 0
    started = [words for words in jobs.notes(journal) if words[0] == "started"]
    assert sorted(started) == [
        ["started", "maintenance", "1"],
        ["started", "worker", "1"],
        ["started", "worker", "1"],
    ]
