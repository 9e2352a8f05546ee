"""Listens for all worker processes of a host, on one connection."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Sequence, Set
from typing import Final

from django_jobqueue.processes.listener import ALIVE_EVERY, Listener
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.processes.worker_relay import WorkerRelay
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import (
    ASYNCHRONOUSLY,
    CHANNEL_OF,
    NOTIFY_OTHERS,
    STILL_WAIT,
    JobElsewhere,
    News,
    payload,
)
from django_jobqueue.store.session import BoundedConnection

WAIT: Final = 0.2  # seconds that the other host has
DISTRUSTED_FOR: Final = 10.0  # seconds that a host is not waited for that did not react
MOST: Final = 1_000  # jobs; whoever finds these finds others as well


class SecondChecks:
    """Remembers for a moment which jobs other hosts were told of.

    If one of them still waits then, workers of this host are woken. If that helped, the
    other host is not waited for, for a while: it is stopped, dead or cut off. If not,
    nobody can start the job now.
    """

    def __init__(self) -> None:
        self._heard: list[tuple[float, JobElsewhere]] = []  # with time.monotonic()
        self._late: dict[str, str] = {}  # ids of jobs that still waited, with the host
        self._distrusted: dict[str, float] = {}  # hosts, until time.monotonic()
        self._due_at = math.inf

    @property
    def seconds_until_due(self) -> float:
        """Until ``check()`` is to be called; infinite if there is nothing to check."""
        return max(0.0, self._due_at - time.monotonic())

    def must_act(self, job: JobElsewhere) -> bool:
        """True if workers of this host are to be woken at once; else the job is
        remembered."""
        now = time.monotonic()
        if now < self._distrusted.get(job.host, -math.inf):
            return True
        if len(self._heard) < MOST:
            self._heard.append((now, job))
            self._due_at = min(self._due_at, now + WAIT)
        return False

    def check(self, still_wait: Callable[[Sequence[str]], Set[str]]) -> bool:
        """True if workers of this host are to be woken for some of the jobs, whose ids
        ``still_wait``."""
        now = time.monotonic()
        if now < self._due_at:
            return False
        hosts = {job.id: job.host for at, job in self._heard if at + WAIT <= now}
        self._heard = [(at, job) for at, job in self._heard if at + WAIT > now]
        waiting = still_wait([*hosts, *self._late])
        for id, host in self._late.items():
            if id not in waiting:
                self._distrust(host, now)
        self._late = {id: host for id, host in hosts.items() if id in waiting}
        due = [at + WAIT for at, _ in self._heard] + [now + WAIT] * bool(self._late)
        self._due_at = min(due, default=math.inf)
        return bool(self._late)

    def _distrust(self, host: str, now: float) -> None:
        self._distrusted = {h: end for h, end in self._distrusted.items() if end > now}
        self._distrusted[host] = now + DISTRUSTED_FOR


class HostListener(Listener):
    """Wakes one worker for a notification of jobs (see ``WorkerRelay``), unless it is
    for another host (see ``SecondChecks``), and passes others on to those whom they
    concern."""

    name = "listener of the host"

    def __init__(
        self,
        process_table: ProcessTable,
        relay: WorkerRelay,
        connection: OwnConnection,
        config: WorkerConfig,
        *,
        on_request: Callable[[str], None] = lambda host: None,
    ) -> None:
        super().__init__(connection, self._distribute)
        self._process_table = process_table
        self._relay = relay
        self.config = config  # of the workers of this host now
        self._second_checks = SecondChecks()
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

    def _channels(self, connection: BoundedConnection) -> list[str]:
        """Also that on which this host alone is told."""
        self._ask(connection, ASYNCHRONOUSLY)
        ((own,),) = self._ask(connection, CHANNEL_OF, host=self.config.supervisor)
        return [own, *super()._channels(connection)]

    def _wait(self, connection: BoundedConnection) -> None:
        """Until somebody wakes us; meanwhile do what the workers need."""
        self._process_table.listener_hears = True
        own, server = self._reader.fileno(), connection.fileno()
        workers = self._relay.pipe.fileno()
        poll = select.poll()  # once: every host comes by below for each job
        for descriptor in (own, server, workers):
            poll.register(descriptor, select.POLLIN)
        while True:
            until_due = min(
                self._alive_at + ALIVE_EVERY - time.monotonic(),
                self._second_checks.seconds_until_due,
                self._relay.seconds_until_due,
            )
            ready = [each for each, _ in poll.poll(max(0.0, until_due) * 1_000)]
            if own in ready:
                self._reader.recv(1_024)
                return
            if server in ready:
                self._alive_at = time.monotonic()
                self._read(connection.pgconn)
            if workers in ready:
                self._relay.hear(self._relay.pipe.wait(0))
            self._relay.proceed()
            self._ask_what_is_due(connection)

    def _ask_what_is_due(self, connection: BoundedConnection) -> None:
        if untold := sorted(self._relay.untold):
            self._relay.untold.clear()
            workers = self._relay.workers
            self._ask(connection, NOTIFY_OTHERS, queues=untold, workers=workers)

        def still_wait(ids: Sequence[str]) -> set[str]:
            return {id for (id,) in self._ask(connection, STILL_WAIT, ids=[*ids])}

        if self._second_checks.check(still_wait):
            self._relay.jobs_arrived()
        if time.monotonic() >= self._alive_at + ALIVE_EVERY:
            self._check(connection)
            self._alive_at = time.monotonic()

    def _distribute(self, news: News, about: str) -> None:
        match news:
            case News.JOBS | News.BEHIND | News.JOB | News.NEIGHBOUR:
                self._hear_of_jobs(news, about)
            case News.JOB_TYPES | News.CANCEL:
                self._relay.pass_to_all(payload(news, about))
            case News.CONTROL:
                self._relay.pass_to(about, payload(news, about))
            case News.HOST:
                self._on_request(about)
            case News.OVER | News.LEASE | News.HELLO:
                pass  # for those who wait for it, on connections of their own

    def _hear_of_jobs(self, news: News, about: str) -> None:
        job = JobElsewhere.parse(about) if news is News.NEIGHBOUR else None
        queue = about if job is None else job.queue
        if not self.config.serves(queue):
            return
        if news is News.JOB:
            self._relay.job_arrived(queue)
        elif job is None or self._second_checks.must_act(job):
            self._relay.jobs_arrived(behind=news is News.BEHIND)
