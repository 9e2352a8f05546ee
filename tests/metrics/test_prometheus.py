"""A real Prometheus scrapes a host and the cluster, and the alerts fire."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml
from django.test import override_settings
from django.utils import timezone

from django_jobqueue.metrics import cluster_figures
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from tests.docs.pages import DOCS
from tests.sample import jobs
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.slow("a real Prometheus takes its scrapes, many times"),
    pytest.mark.processes,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="needs Prometheus"),
]

SOON: Final = "1s"
LOOK_BACK: Final = "[60s]"  # where the rules have 15 minutes
PATIENCE: Final = 120.0  # seconds


@pytest.fixture
def cluster(transactional_db: None) -> Iterator[str]:
    """An address that serves the metrics of the cluster."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = OwnConnection("tests")
            try:
                answer = Exposition().render(cluster_figures.read(own))
            finally:
                own.close()
            self.send_response(200)
            self.send_header("Content-Type", answer.content_type)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # so that closing it waits for their connections
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with override_settings(JOBQUEUE={"METRICS_MAX_AGE": 0}):
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()


class Prometheus:
    """One with short intervals, which knows our rules."""

    def __init__(self, folder: Path, targets: dict[str, str]) -> None:
        self.log = folder / "prometheus.log"
        rules = (DOCS / "operations" / "prometheus-rules.yml").read_text()
        rules = re.sub(r"for: \d+m", f"for: {SOON}", rules.replace("[15m]", LOOK_BACK))
        (folder / "rules.yml").write_text(rules)
        config = {
            "global": {"scrape_interval": SOON, "evaluation_interval": SOON},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": name, "static_configs": [{"targets": [target]}]}
                for name, target in targets.items()
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}/api/v1"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address={self.url[7:].partition('/')[0]}",
                ],
                stdout=log,
                stderr=log,
            )

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        alerts = self._get("alerts")["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}

    def value(self, query: str) -> float:
        """The only value that it has for this; 0 if it has none."""
        found = self._get(f"query?query={quote(query)}")["result"]
        return float(found[0]["value"][1]) if found else 0.0

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _get(self, path: str) -> Any:
        try:
            with urlopen(f"{self.url}/{path}", timeout=20) as answer:  # noqa: S310
                return json.load(answer)["data"]
        except OSError:  # it has not started
            return {"alerts": [], "result": []}


def test_the_alerts_of_a_staged_failure_fire_and_no_others(
    runworkers: Callable[..., RunWorkers], cluster: str, tmp_path: Path
) -> None:
    run = runworkers("--threads", "2", "--queues", "default", "--metrics-port", "0")
    run.started()
    address = re.compile(r"Metrics at http://(\S+)/metrics")
    host = eventually(lambda: address.search(run.output), what=lambda: run.output)[1]
    folder = tmp_path / "prometheus"
    folder.mkdir()
    prometheus = Prometheus(folder, {"jobqueue": host, "jobqueue-cluster": cluster})

    def wait(condition: Callable[[], object]) -> None:
        eventually(
            condition,
            within=PATIENCE,
            what=lambda: (
                f"{prometheus.firing()}\n{prometheus.log.read_text()[-2_000:]}"
            ),
        )

    try:
        failed = 'jobqueue_finished_jobs_total{status="failed"}'
        jobs.fail.enqueue()
        wait(lambda: prometheus.value(failed) == 1)
        assert prometheus.firing() == set()
        jobs.fail.enqueue_many({} for _ in range(60))
        jobs.add.using(queue="nobody-serves-it").enqueue(1)
        QueuedJob.objects.filter(queue="nobody-serves-it").update(
            run_after=timezone.now() - timedelta(hours=1)
        )
        expected = {"JobqueueFailing", "JobqueueUnserved", "JobqueueBacklogOld"}
        wait(lambda: prometheus.firing() == expected)
        assert prometheus.value('jobqueue_wanted_slots{queue="nobody-serves-it"}') == 1
        assert run.stop() == 0
        wait(lambda: {"JobqueueNoWorker", "JobqueueBlind"} <= prometheus.firing())
    finally:
        prometheus.close()
