"""Stops the workers of a ``runworkers --standby`` that has lost its lease."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.host.control import HostedWorker
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.shutdown import WORKER_QUITS, Step, Stopping

logger = logging.getLogger("django_jobqueue.supervisor")

SHORTEST_PAUSE: Final = 0.02  # seconds


class StepDown:
    """Stops them as a signal does, and kills them before another host is active: when
    most of a lease has passed since its last renewal."""

    def __init__(
        self, process_table: ProcessTable, on_activity: Callable[[], None]
    ) -> None:
        self._process_table = process_table
        self._on_activity = on_activity
        self._stopping: Stopping | None = None

    def proceed(self, workers: Sequence[HostedWorker]) -> None:
        """Take the steps that are due."""
        table, now = self._process_table, lease_time()
        if table.may_work(now):
            self._stopping = None
            return
        living = [worker for worker in workers if not worker.is_killed]
        if now >= table.standby_until:
            _kill(living)
            return
        if self._stopping is None:
            self._stopping = _stopping(table.standby_until - now)
        for step in self._stopping.due(time.monotonic()):
            for worker in living:
                self._take(worker, step)

    def seconds_until_next(self) -> float:
        """Seconds until the next step, or until the lease was not renewed for too
        long."""
        table = self._process_table
        left = table.standby_until - lease_time()
        if self._stopping is not None and self._stopping.next_at is not None:
            left = min(left, self._stopping.next_at - time.monotonic())
        return max(SHORTEST_PAUSE, left)

    def _take(self, worker: HostedWorker, step: Step) -> None:
        self._on_activity()
        worker.is_ending = True
        if step is Step.KILL:
            _kill([worker])
        else:
            worker.take(step)


def _stopping(left: float) -> Stopping:
    """The steps of a stop that has so many seconds."""
    cancel_grace = min(conf.cancel_grace, left / 4)
    grace = max(0.0, min(conf.grace, left - cancel_grace - WORKER_QUITS))
    stopping = Stopping(grace=grace, cancel_grace=cancel_grace)
    stopping.signal(time.monotonic())
    return stopping


def _kill(workers: Sequence[HostedWorker]) -> None:
    for worker in workers:
        logger.error(
            "Worker %s: another host may be active any moment; %s",
            worker.name,
            worker.how_fenced,
        )
        worker.fence("of this host was lost")
