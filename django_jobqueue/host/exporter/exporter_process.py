"""The exporter process: answers scrapes and probes of one runworkers.

A process of its own, since the supervisor has no thread, and since handlers may hold
the interpreter's lock of a worker for as long as they like.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Final

from django_jobqueue import signals
from django_jobqueue.host.exporter.answers import Answers
from django_jobqueue.host.exporter.cluster_reader import UNUSED, ClusterReader
from django_jobqueue.host.exporter.host_samples import HostSamples
from django_jobqueue.host.exporter.scrape_server import ScrapeServer
from django_jobqueue.processes import identity
from django_jobqueue.processes.forking import ORPHANED
from django_jobqueue.processes.host_counters import HostCounters
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.shutdown import ANSWERS_END
from django_jobqueue.processes.wait_readable import wait_readable
from django_jobqueue.workers.worker_main import ENDED

END_PAUSE: Final = 0.02  # seconds between looks whether connections have ended


class ExporterProcess:
    """Serves until it is told to stop, or its supervisor is gone."""

    def __init__(
        self,
        *,
        listening: int,
        order_pipe: int,
        process_table: ProcessTable,
        counters: HostCounters,
        drains: bool,
    ) -> None:
        self._listening = socket.socket(fileno=listening)
        self._order_pipe = order_pipe
        samples = HostSamples(process_table, counters, drains=drains)
        self._cluster = ClusterReader()
        answers = Answers(process_table, samples, self._cluster)
        self._server = ScrapeServer(self._listening, answers)

    def live(self) -> int:
        """Serve; returns the exit code."""
        identity.name_process("jq:exporter")
        signals.send(signals.process_started, None, process="exporter")
        pipe, listening = self._order_pipe, self._listening.fileno()
        while True:
            ready = wait_readable(pipe, listening, within=self._pause())
            if pipe in ready:
                if not os.read(pipe, 64):
                    os._exit(ORPHANED)
                break
            if listening in ready:
                self._server.accept()
            self._cluster.close(UNUSED)
        self._finish()
        return ENDED

    def _pause(self) -> float:
        """Seconds until a connection to the database may be closed; whoever is served
        now may open one."""
        may_be_open = self._cluster.is_open or not self._server.is_idle
        return UNUSED if may_be_open else FOREVER

    def _finish(self) -> None:
        """Let the last answers be sent."""
        self._listening.close()
        deadline = time.monotonic() + ANSWERS_END
        while not self._server.is_idle and time.monotonic() < deadline:
            time.sleep(END_PAUSE)
        self._cluster.close()
