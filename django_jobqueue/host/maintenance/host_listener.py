"""Listens for all worker processes of a host, on one connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from django_jobqueue.processes.listener import ALIVE_EVERY, Listener
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wait_readable import wait_readable
from django_jobqueue.processes.worker_relay import WorkerRelay
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News, payload


class HostListener(Listener):
    """Wakes one worker for a notification of jobs (see ``WorkerRelay``), and passes
    others on to those whom they concern."""

    name = "listener of the host"

    def __init__(
        self,
        process_table: ProcessTable,
        relay: WorkerRelay,
        connection: OwnConnection,
        queues: Sequence[str] | None,
        *,
        on_request: Callable[[str], None] = lambda host: None,
    ) -> None:
        super().__init__(connection, self._distribute)
        self._process_table = process_table
        self._relay = relay
        self.queues = queues  # that workers of this host serve now
        self._on_request = on_request
        self._alive_at = time.monotonic()

    def tick(self) -> float:
        """Wait until something is heard, and pass it on."""
        try:
            return super().tick()
        finally:
            if not self.hears and self._process_table.listener_hears:
                self._process_table.listener_is_gone()

    def close(self) -> None:
        """Let the connection go."""
        super().close()
        self._process_table.listener_is_gone()

    def _ready(self, own: int, server: int, within: float) -> list[int]:
        """Wait for the server, and meanwhile do what the workers need."""
        self._process_table.listener_hears = True
        while True:
            self._relay.proceed()
            until_alive = max(0.0, self._alive_at + ALIVE_EVERY - time.monotonic())
            workers = self._relay.pipe.fileno()
            ready = wait_readable(
                own,
                server,
                workers,
                within=min(until_alive, self._relay.seconds_until_due),
            )
            if workers in ready:
                self._relay.hear(self._relay.pipe.wait(0))
            if server in ready or own in ready or not until_alive:
                self._alive_at = time.monotonic()
                return ready

    def _distribute(self, news: News, about: str) -> None:
        match news:
            case News.JOBS | News.BEHIND:
                if self.queues is None or about in self.queues:
                    self._relay.jobs_arrived(behind=news is News.BEHIND)
            case News.JOB_TYPES | News.CANCEL:
                self._relay.pass_to_all(payload(news, about))
            case News.CONTROL:
                self._relay.pass_to(about, payload(news, about))
            case News.HOST:
                self._on_request(about)
            case News.OVER | News.LEASE | News.HELLO:
                pass  # for those who wait for it, on connections of their own
