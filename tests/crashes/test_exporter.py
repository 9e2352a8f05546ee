"""The exporter process of a real ``runworkers``."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.db import connection
from prometheus_client.parser import text_string_to_metric_families as parse

from django_jobqueue.metrics.catalogue import host
from django_jobqueue.metrics.metric import Kind
from django_jobqueue.models import ArchivedJob
from tests.crashes.seen import children, kill, starts
from tests.sample import jobs
from tests.support.doomed_server import Doomed
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
ANY_PORT = ("--metrics-port", "0")
QUICK = {
    **BRISK,
    "host.exporter.answers.ROUNDS_MISSED": 0.3,  # a hanging supervisor is soon noticed
    "host.exporter.exporter_process.UNUSED": 0.2,
}
Key = tuple[str, frozenset[tuple[str, str]]]


class Answer(NamedTuple):
    status: int
    body: str


def url(run: RunWorkers) -> str:
    pattern = re.compile(r"Metrics at (http://127\.0\.0\.1:\d+)/metrics")
    match = eventually(lambda: pattern.search(run.output), what=lambda: run.output)
    return str(match[1])


def get(run: RunWorkers, path: str) -> Answer:
    """The answer to a GET; tried again while nobody serves there."""

    def ask() -> Answer | None:
        try:
            with urlopen(Request(url(run) + path), timeout=20) as answer:  # noqa: S310
                return Answer(answer.status, answer.read().decode())
        except HTTPError as error:
            return Answer(error.code, error.read().decode())
        except OSError:
            return None

    answer: Answer = eventually(ask, what=lambda: run.output)
    return answer


def samples(run: RunWorkers) -> dict[Key, float]:
    """All values of a scrape."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(get(run, "/metrics").body)
        for sample in family.samples
    }


def value(run: RunWorkers, name: str, **labels: str) -> float:
    """One of them; 0 if there is none."""
    return samples(run).get((name, frozenset(labels.items())), 0.0)


def counted() -> set[str]:
    return {
        name + ending
        for name, metric in host().items()
        if metric.kind is not Kind.GAUGE
        for ending in ("", "_bucket", "_count", "_sum")
    }


def exporter(run: RunWorkers) -> int:
    def find() -> int | None:
        for pid in children(run.process.pid):
            with suppress(OSError):  # it has ended by now
                if Path(f"/proc/{pid}/comm").read_text() == "jq:exporter\n":
                    return pid
        return None

    return int(eventually(find))


def check_connections_of_the_exporter(run: RunWorkers) -> None:
    """It has one only while somebody asks for the cluster."""

    def connections() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE application_name = 'jobqueue metrics'"
                " AND datname = current_database()"
            )
            return int(cursor.fetchone()[0])

    get(run, "/metrics")
    assert connections() == 0
    answer = get(run, "/metrics/cluster")
    assert answer.status == 200
    assert 'jobqueue_workers{state="running"} 1.0\n' in answer.body
    assert "jobqueue_worker_" not in answer.body
    eventually(lambda: connections() == 0)
    assert get(run, "/metrics/cluster").status == 200


def test_what_a_host_exposes_is_what_the_catalogue_lists(
    runworkers: Run, journal: str
) -> None:
    endpoint = {"shipping": {"url": "https://shipping.internal", "secrets": []}}
    env = {"JOBQUEUE_ENDPOINTS": json.dumps(endpoint)}
    flags = ("--threads", "2", "--async-slots", "3", *ANY_PORT)
    run = runworkers(*flags, constants=QUICK, **env)
    run.started()
    check_connections_of_the_exporter(run)
    jobs.write.enqueue(journal, "a")
    jobs.fail_with_the_same.enqueue()
    attempts = {"queue": "default", "job_type": "tests.sample.write"}
    eventually(
        lambda: (
            value(
                run, "jobqueue_worker_attempts_total", outcome="succeeded", **attempts
            )
            == 1
        )
    )
    families = {family.name: family for family in parse(get(run, "/metrics").body)}
    named = {name.removesuffix("_total"): metric for name, metric in host().items()}
    assert families.keys() == named.keys()
    for name, metric in named.items():
        family = families[name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        allowed = {*metric.label_names, "le"}
        assert all(sample.labels.keys() <= allowed for sample in family.samples)
    eventually(lambda: value(run, "jobqueue_worker_slots", kind="thread") == 2)
    shown = samples(run)
    assert shown["jobqueue_worker_slots", frozenset({("kind", "async")})] == 3
    assert shown["jobqueue_worker_database_up", frozenset()] == 1
    refused = frozenset({("endpoint", "shipping"), ("answer", "refused")})
    assert shown["jobqueue_worker_endpoint_answers_total", refused] == 0
    for process in ("supervisor", "maintenance", "exporter", "worker"):
        label = frozenset({("process", process)})
        assert shown["jobqueue_worker_processes", label] == 1
        assert shown["jobqueue_worker_resident_memory_bytes", label] > 1_000_000
    assert get(run, "/nowhere").status == 404
    request = Request(url(run) + "/metrics", headers={"Accept-Encoding": "gzip"})  # noqa: S310
    with urlopen(request, timeout=20) as answer:  # noqa: S310
        assert answer.headers["Content-Encoding"] == "gzip"
        zipped = gzip.decompress(answer.read()).decode()
    assert {family.name for family in parse(zipped)} == named.keys()
    port = url(run).rpartition(":")[2]
    other = runworkers("--threads", "1", "--metrics-port", port)
    assert other.wait() == 1
    assert (
        f"CommandError: Port {port} on 127.0.0.1 is in use (Address already in use). "
        "Choose another one, or --metrics-port 0." in other.output
    )
    assert run.stop() == 0
    assert run.output.endswith(f" INFO Stopped. Metrics were at {url(run)}/metrics\n")


def test_no_counter_falls_while_processes_are_killed_and_replaced(
    runworkers: Run, journal: str
) -> None:
    count = 120
    run = runworkers(
        *("--processes", "2", "--threads", "2", "--max-jobs", "20", "--lease", "60"),
        *ANY_PORT,
        constants=BRISK,
    )
    run.started(2)
    jobs.write.enqueue_many(
        {"journal": journal, "word": str(n), "seconds": 0.02} for n in range(count)
    )
    scrapes = [samples(run)]
    victims = iter([*run.workers(), exporter(run)])
    done = 0.0
    while done < count:
        done = eventually(lambda before=done: _finished_since(before, count))
        if (victim := next(victims, None)) is not None:
            kill(victim)
        scrapes.append(samples(run))
    assert ArchivedJob.objects.filter(status="succeeded").count() == count
    label = frozenset({("how", "killed")})
    deaths = ("jobqueue_worker_deaths_total", label)
    eventually(lambda: samples(run)[deaths] == 3, what=lambda: samples(run)[deaths])
    eventually(lambda: value(run, "jobqueue_worker_recycled_total", why="jobs") >= 1)
    scrapes.append(samples(run))
    grows = counted()
    for before, after in zip(scrapes, scrapes[1:], strict=False):
        fell = {
            key: (number, after.get(key))
            for key, number in before.items()
            if key[0] in grows and after.get(key, -1) < number
        }
        assert fell == {}


def _finished_since(before: float, count: int) -> float:
    """How many jobs are over, once that is more than before by a tenth of all."""
    now = ArchivedJob.objects.count()
    return now if now == count or now > before + count / 10 else 0


def test_an_exporter_that_dies_or_is_paused_is_replaced_at_the_same_port(
    runworkers: Run, journal: str
) -> None:
    """And it counts what became of a worker that was killed, and of its job. A
    supervisor that hangs for a while is not alive. A stop in good order loses no count,
    and ends the exporter last."""
    run = runworkers("--threads", "1", *ANY_PORT, constants=QUICK)
    port = url(run)
    (pid,) = run.started()
    first = exporter(run)
    kill(first)
    eventually(lambda: exporter(run) != first)
    assert get(run, "/healthz").status == 200
    second = exporter(run)
    os.kill(second, signal.SIGSTOP)
    eventually(lambda: exporter(run) != second, what=lambda: run.output)
    assert get(run, "/readyz").status == 200
    jobs.linger.enqueue(journal, "slow")
    eventually(lambda: starts(journal))
    kill(pid)
    attempts = "jobqueue_worker_attempts_total"
    labels = {"queue": "default", "job_type": "tests.sample.linger"}
    eventually(lambda: value(run, attempts, outcome="succeeded", **labels) == 1)
    # Another process publishes this, at its own time.
    eventually(lambda: value(run, attempts, outcome="crashed", **labels) == 1)
    assert value(run, "jobqueue_worker_rescued_jobs_total", became="queued") == 1
    assert value(run, "jobqueue_worker_deaths_total", how="killed") == 3

    jobs.await_leave.enqueue(journal, "last")
    eventually(lambda: starts(journal)["last"])
    assert json.loads(get(run, "/readyz").body)["status"] == "ok"
    run.signal(signal.SIGSTOP)
    eventually(lambda: get(run, "/healthz").status == 503)
    run.signal(signal.SIGCONT)
    eventually(lambda: get(run, "/healthz").status == 200)
    run.signal(signal.SIGTERM)
    eventually(lambda: value(run, "jobqueue_worker_stopping") == 1)
    assert value(run, "jobqueue_worker_remaining_jobs") == 1
    stopping = get(run, "/readyz")
    assert (stopping.status, json.loads(stopping.body)["stopping"]) == (503, True)
    jobs.give_leave(journal, "last")
    assert run.wait() == 0
    with pytest.raises(OSError, match="refused"):
        urlopen(port, timeout=5)  # noqa: S310


@pytest.mark.servers
def test_an_outage_of_the_database_is_counted_and_restarts_nothing(
    doomed: Doomed,
) -> None:
    run = doomed.runworkers("--threads", "1", "--lease", "2", *ANY_PORT)
    up, errors = "jobqueue_worker_database_up", "jobqueue_worker_database_errors_total"
    eventually(lambda: value(run, up) == 1)
    before = value(run, errors)
    doomed.server.stop("immediate")
    eventually(lambda: value(run, up) == 0)
    assert get(run, "/healthz").status == 200
    assert get(run, "/metrics/cluster").body.count("\njobqueue_") == 1
    eventually(lambda: get(run, "/readyz").status == 503)
    doomed.server.start()
    eventually(lambda: value(run, up) == 1)
    assert value(run, errors) > before
    eventually(lambda: get(run, "/readyz").status == 200)
