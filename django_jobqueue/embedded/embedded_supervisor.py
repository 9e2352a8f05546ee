"""The workers of a process that is there for something else, and their maintenance.

Host control decides (``host/control.py``); this strategy has threads for each worker.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from typing import Final
from uuid import uuid4

from django_jobqueue import rooms
from django_jobqueue.domain.registry import BY_ENDPOINTS
from django_jobqueue.embedded.threaded_worker import HostedThreads
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution import connection_reset
from django_jobqueue.host.control import HostControl
from django_jobqueue.host.host_orders import HostOrders, capacity
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.processes import identity
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig

BEAT: Final = 0.25  # seconds between looks
HASTE: Final = 0.01  # the same while somebody waits for an end
ENTRIES: Final = 8  # for the worker, those that it replaced, and one for jobs alone
ALONE_AFTER: Final = 3.0  # seconds that a job that must run alone is left to others
JOIN: Final = 1.0  # seconds for a loop to end

_numbers = itertools.count(1)


class EmbeddedSupervisor(Loop):
    """Has one worker run in this process, and a successor after it was restarted or has
    lost its lease."""

    name = "embedded worker"
    longest_after_error = 1.0  # somebody may wait for it to stop

    def __init__(self, config: WorkerConfig, *, grace: float) -> None:
        super().__init__()
        pid = os.getpid()
        config = config._replace(
            embedded=True,
            host_id=uuid4(),
            host_identity=identity.identity(pid),
            supervisor=f"{identity.name_of(pid)}/embedded",
        )
        self.process_table = ProcessTable(ENTRIES)
        self.workers: list[HostedThreads] = []  # changed by its own thread alone
        self._control = HostControl(config, self.process_table, wanted=1, grace=grace)
        self._grace = grace
        self._maintenance = HostMaintenance(self.process_table, config)
        self._orders = HostOrders(
            self._control,
            self.process_table,
            bounds=capacity(config, 1),
            on_report=self._pass_on_report,
        )
        self._orders.report([])
        self._fill_at = 0.0
        self._stops: deque[float | None] = deque()  # graces, from other threads
        self._calls: list[int] = []
        self._alone_since = 0.0  # time.monotonic(); a job that must run alone is due
        self._has_made_room = False  # for such a job

    @property
    def worker(self) -> HostedThreads | None:
        """The worker that claims; None while there is none."""
        present = (w for w in self.workers if not (w.quarantined or w.is_ending))
        return next(present, None)

    @property
    def has_ended(self) -> bool:
        """True if its thread has ended, so that nothing of it is left."""
        return self._thread is not None and not self._thread.is_alive()

    def join(self, timeout: float) -> bool:
        """Wait until it has ended; False if it has not after so many seconds."""
        assert self._thread is not None
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def request_stop(self, grace: float | None) -> None:
        """Stop: after the grace in any case; of several graces the one that is over
        first holds. From any thread."""
        self._stops.append(grace)
        self.wake()

    def tick(self) -> float:
        """Look after the workers."""
        while self._stops:
            grace = self._stops.popleft()
            self._control.stop_within(self._grace if grace is None else grace)
        self._orders.proceed(self.workers)
        if not self._control.stopping and time.monotonic() >= self._fill_at:
            self._fill()
        for worker in self.workers:
            worker.check()
        self._control.fence_and_obey(self.workers)
        self._control.proceed(self.workers)
        self._pass_on_calls()
        self._recover()
        if self._control.is_over(self.workers, all_recovered=True):
            self.stop(0)
        ending = any(worker.is_ending or worker.config.drain for worker in self.workers)
        return HASTE if ending else BEAT

    def close(self) -> None:
        """All have ended: deal with the last deaths."""
        if self._maintenance.has_started:
            self._maintenance.settle()
            self._maintenance.stop(JOIN)

    def _fill(self) -> None:
        """Have a worker here, and now and then one for a job that runs alone."""
        try:
            if not self._maintenance.has_started:
                rooms.offer("handlers", BY_ENDPOINTS)  # while nothing waits for it
                self._maintenance.get_ready()
                self._maintenance.start()
                connection_reset.keep_connections()
            if self._control.missing(self.workers):
                listen = self.process_table.can_listen
                self._spawn(self._control.config._replace(listen=listen))
            elif (worker := self.worker) is not None:
                self._make_room(worker)
        except StoreUnavailable as error:
            self._fill_at = time.monotonic() + error.retry_in

    def _make_room(self, worker: HostedThreads) -> None:
        """Let a job that must run alone do so: with no other job in this process. Such
        a job was there when a worker died. Hosts that have a process for it come
        first."""
        has_waited = self._has_waited()
        if any(other.quarantined for other in self.workers):
            return
        if has_waited and self._control.wants_quarantined(self.workers):
            self._has_made_room = True
            worker.drain()
            if worker.is_empty:
                config = self._control.config.for_quarantined()
                self._spawn(config._replace(listen=False))
        elif self._has_made_room:
            self._has_made_room = False
            if not worker.is_paused:
                worker.resume()

    def _has_waited(self) -> bool:
        """True if a job that must run alone has been left to others for long enough."""
        seen_at = self.process_table.quarantine_seen_at
        if not seen_at:
            self._alone_since = 0.0
        elif not self._alone_since:
            self._alone_since = seen_at
        since = self._alone_since
        return bool(since) and time.monotonic() - since >= ALONE_AFTER

    def _spawn(self, config: WorkerConfig) -> None:
        """Start a worker. Raises StoreUnavailable."""
        entry, now = self.process_table.free(), time.monotonic()
        if entry is None or not self._control.restarts.is_due(now):
            return
        name = f"{identity.name_of(os.getpid())}/embedded-{next(_numbers)}"
        worker = HostedThreads(config._replace(name=name), self.process_table, entry)
        try:
            worker.begin()
        except RuntimeError as error:  # there is no room for all of its threads
            self._control.restarts.could_not_start("thread", error, now)
            id = worker.state.worker
            worker.end()
            death = ProcessDeath(id, worker.name, False, "it could not start")
            self._maintenance.recover(death)
        else:
            self.workers.append(worker)

    def _recover(self) -> None:
        """End the workers that are done, and have maintenance take their jobs."""
        for worker in [worker for worker in self.workers if worker.is_done]:
            entry = worker.state
            worker.end()
            self.workers.remove(worker)
            self._maintenance.recover(self._control.ended(worker, entry))

    def _pass_on_report(self) -> None:
        """Have the renewer write how this host is."""
        if self._maintenance.has_started:
            self._maintenance.check_workers()

    def _pass_on_calls(self) -> None:
        """Have the renewer look at once if a worker heard that an operator asks for
        something: no wakeup pipe tells it."""
        calls = [worker.state.calls for worker in self.workers]
        if sum(calls) > sum(self._calls):
            self._maintenance.check_workers()
        self._calls = calls
