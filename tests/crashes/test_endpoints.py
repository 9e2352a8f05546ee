"""Endpoints in real programs: jobs are sent once, and counted as promised, whoever is
killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Sum
from django.test import override_settings

from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.models import ArchivedJob, QueuedJob, Total, Worker
from tests.contrib.remote.conftest import SECRETS, EndpointServer, Reply
from tests.crashes.test_exporter import ANY_PORT, value
from tests.sample import endpoints
from tests.support.commands import ROOT
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

ANSWERS = "jobqueue_worker_endpoint_answers_total"
EXAMPLE = ROOT / "docs" / "guides" / "remote" / "endpoint.mjs"
NODE = shutil.which("node")

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node")

QUICK = {
    **BRISK,
    "contrib.remote.endpoint_watch.CHECK_EVERY": 0.1,
    "contrib.remote.endpoint_watch.LATE": 0.2,
    "workers.process_counters.EVERY": 0.1,
}


def settings_of(url: str) -> dict[str, str]:
    entry = {"url": url, "secrets": SECRETS, "read_timeout": 2, "concurrency": None}
    return {
        "SAMPLE_ENDPOINTS": "1",
        "JOBQUEUE_ENDPOINTS": json.dumps({"shipping": entry}),
        "JOBQUEUE_SITE_URL": "https://shop.example",
    }


class NodeEndpoint:
    def __init__(self, site: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = (folder / "endpoint.log").open("ab")
        self._env = {
            **os.environ,
            "PORT": str(self.port),
            "ENDPOINT_SECRETS": SECRETS[1],
            "JOBQUEUE_TOKEN": create_token("shipping", ["work"]).text,
            "CALLBACK_ORIGIN": site,
        }
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(
            [str(NODE), str(EXAMPLE)],
            env=self._env,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        eventually(self._listens, what="the endpoint to listen")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._log.close()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def node(live_server: Any, tmp_path: Path) -> Iterator[NodeEndpoint]:
    """The example for Node, which calls back to a site in this process."""
    with override_settings(JOBQUEUE={"HTTP_REQUIRE_TLS": False}):
        made = NodeEndpoint(live_server.url, tmp_path)
        yield made
    made.close()


@pytest.fixture
def ship() -> Iterator[Any]:
    yield from endpoints.declared()


def over(count: int) -> bool:
    return ArchivedJob.objects.count() == count and not QueuedJob.objects.exists()


@needs_node
@pytest.mark.parametrize(("total", "kills"), some_slow([(3, 0), (12, 2)], [(3, 0)]))
def test_every_job_is_done_though_the_endpoint_and_workers_are_killed(
    node: NodeEndpoint,
    ship: Any,
    runworkers: Callable[..., RunWorkers],
    total: int,
    kills: int,
) -> None:
    flags, env = ("--lease", "2"), settings_of(node.url)
    hosts = [runworkers(*flags, constants=QUICK, **env) for _ in range(1 + kills)]
    for host in hosts:
        host.started()
    briefly = ship.using(timeout=1)
    unknown = briefly.enqueue(order=-1).id
    briefly.enqueue_many([{"order": n, "ms": 200} for n in range(total)])
    for _ in range(kills):
        time.sleep(random.uniform(0.1, 0.6))
        node.kill()
        time.sleep(random.uniform(0, 0.3))
        node.start()
    for worker in Worker.objects.filter(state="running") if kills else ():
        os.kill(worker.pid, 9)
    eventually(lambda: over(total + 1), within=90, what="the end")
    failed = ArchivedJob.objects.get(id=unknown)
    assert failed.status == "failed"
    assert "no order -1" in failed.error_message
    results = [job.result for job in ArchivedJob.objects.filter(status="succeeded")]
    assert sorted((one["order"], one["parcel"]) for one in results) == [
        (number, f"P-{number}") for number in range(total)
    ]
    eventually(
        lambda: Total.objects.aggregate(n=Sum("attempts_succeeded"))["n"] == total,
        within=30,
        what="every job to be counted once",
    )


def test_hosts_that_push_to_one_endpoint_add_their_answers_up(
    transactional_db: None, ship: Any, runworkers: Callable[..., RunWorkers]
) -> None:
    server = EndpointServer()
    server.answer(Reply(500), Reply(500), Reply(204))
    flags = ("--processes", "2", "--threads", "1", "--async-slots", "2", *ANY_PORT)
    env = settings_of(server.url)
    hosts = [runworkers(*flags, constants=QUICK, **env) for _ in range(2)]
    for host in hosts:
        host.started(2)
    ship.enqueue_many([{"order": number} for number in range(40)])
    eventually(lambda: over(40), within=60, what="jobs to end")

    def exposed() -> dict[str, float]:
        return {
            answer: sum(
                value(host, ANSWERS, endpoint="shipping", answer=answer)
                for host in hosts
            )
            for answer in ("2xx", "5xx", "timeout")
        }

    counts = {"2xx": 40, "5xx": 2, "timeout": 0}
    eventually(lambda: exposed() == counts, what=lambda: str(exposed()))
    for host in hosts:
        host.stop()
    assert len(server.received) == 42
    row = Worker.objects.get(state="endpoint").answers
    minutes = row["minutes"].values()
    assert [sum(each) for each in zip(*minutes, strict=True)] == [42, 2]
    assert (row["last"]["status"], row["last_failure"]["status"]) == (204, 500)
    workers = set(Worker.objects.filter(state="stopped").values_list("name", flat=True))
    assert {row["last"]["worker"], row["last_failure"]["worker"]} <= workers
    server.close()


def test_the_death_of_a_worker_sends_nothing_twice(
    transactional_db: None, ship: Any, runworkers: Callable[..., RunWorkers]
) -> None:
    server = EndpointServer()
    server.answer(Reply(202))
    host = runworkers("--lease", "2", constants=QUICK, **settings_of(server.url))
    host.started()
    endpoints.slow.enqueue_many([{"order": number} for number in range(10)])
    endpoint = Worker.objects.get(state="endpoint")
    held = QueuedJob.objects.filter(worker_id=endpoint.pk)
    eventually(lambda: held.count() == 10, what="jobs to be handed over")
    first = Worker.objects.get(state="running")
    os.kill(first.pid, 9)
    eventually(
        lambda: Worker.objects.filter(state="running").exclude(pk=first.pk).exists(),
        what="a successor",
    )
    jobs_of_others = endpoints.slow.enqueue(order=11)
    eventually(lambda: held.count() == 11, what="the successor to send a job")
    assert QueuedJob.objects.filter(pk=jobs_of_others.id).exists()
    sent = [one.json["id"] for one in server.received]
    assert len(sent) == len(set(sent)) == 11
    server.close()
