"""Answers scrapes and probes: metrics of this host and of the cluster; whether the host
lives, and is ready."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import MetricsExtraMissing
from django_jobqueue.host.exporter.cluster_reader import ClusterReader
from django_jobqueue.host.exporter.host_samples import HostSamples
from django_jobqueue.host.exporter.scrape_server import Request, Response, text
from django_jobqueue.host.host_status import ASLEEP, HostStatus
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.metrics.metric import Sample
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.workers.worker_main import IDLE_CHECKS

SCRAPES: Final = 8  # at once; probes need no place among them
ROUNDS_MISSED: Final = 3  # of the supervisor, after which it does not live


class Answers:
    """By path. Health needs neither the database nor an extra."""

    def __init__(
        self, process_table: ProcessTable, samples: HostSamples, cluster: ClusterReader
    ) -> None:
        self._process_table = process_table
        self._samples = samples
        self._cluster = cluster
        self._exposition: Exposition | None = None
        self._scrapes = threading.BoundedSemaphore(SCRAPES)
        self._by_path: dict[str, Callable[[Request], Response]] = {
            "/metrics": self._metrics,
            "/metrics/cluster": self._cluster_metrics,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
        }

    def __call__(self, request: Request) -> Response:
        """The answer to this request."""
        answer = self._by_path.get(request.path)
        if answer is None:
            paths = ", ".join(self._by_path)
            return text(HTTPStatus.NOT_FOUND, f"There are {paths}.")
        return answer(request)

    def _metrics(self, request: Request) -> Response:
        return self._shown(request, self._samples)

    def _cluster_metrics(self, request: Request) -> Response:
        return self._shown(request, self._cluster.read)

    def _shown(
        self, request: Request, read: Callable[[], Iterable[Sample] | None]
    ) -> Response:
        if not self._scrapes.acquire(blocking=False):
            return text(HTTPStatus.SERVICE_UNAVAILABLE, "Too many scrapes at once.")
        try:
            return self._exposed(request, read)
        finally:
            self._scrapes.release()

    def _exposed(
        self, request: Request, read: Callable[[], Iterable[Sample] | None]
    ) -> Response:
        headers = request.headers
        try:
            if self._exposition is None:
                self._exposition = Exposition()
        except MetricsExtraMissing as error:
            return text(HTTPStatus.NOT_IMPLEMENTED, str(error))
        samples = read()
        if samples is None:
            return text(HTTPStatus.SERVICE_UNAVAILABLE, "The database is slow.")
        shown = self._exposition.render(
            samples,
            headers.get("accept", ""),
            headers.get("accept-encoding", ""),
        )
        more = {"Content-Encoding": shown.encoding} if shown.encoding else {}
        return Response(HTTPStatus.OK, shown.body, shown.content_type, more)

    def _healthz(self, request: Request) -> Response:
        longest_pause = max(1.0, conf.lease / IDLE_CHECKS)
        silence = time.monotonic() - self._process_table.supervised_at
        is_alive = silence < ROUNDS_MISSED * longest_pause
        return _json(is_alive, self._status())

    def _readyz(self, request: Request) -> Response:
        status = self._status()
        return _json(status.is_ready and not status.is_stopping, status)

    def _status(self) -> HostStatus:
        return HostStatus.of(self._process_table)


def _json(is_well: bool, status: HostStatus) -> Response:
    lease, word = status.lease_seconds, "ok"
    if not is_well:
        word = ASLEEP if status.is_asleep else "not ok"
        word = "stopping" if status.is_stopping else word
    content: dict[str, Any] = {
        "status": word,
        "processes": status.workers,
        "held": status.jobs,
        "lease_seconds": None if lease is None else round(lease, 1),
        "stopping": status.is_stopping,
    }
    return Response(
        HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE,
        json.dumps(content).encode() + b"\n",
        "application/json",
    )
