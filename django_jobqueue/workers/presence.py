"""Publishes the state of a worker in its entry of the process table."""

from __future__ import annotations

import threading
import time
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.workers.worker import Worker

ACTIVITY_EVERY: Final = (
    1.0  # seconds between claims that say that there is something to do
)


class Presence:
    """Says that a worker has jobs before the first of them starts, and now and then how
    many: a handler that holds the interpreter's lock lets nobody say it later."""

    def __init__(self, worker: Worker, process_table: ProcessTable, entry: int) -> None:
        self._worker = worker
        self._process_table = process_table
        self._entry = entry
        self._reported = 0  # how many jobs
        self._publishing = threading.Lock()
        self._has_claimed = False
        self._published_activity = 0.0  # time.monotonic(), as others were told

    def claimed(self) -> None:
        """Jobs were claimed, and none of them has started; from any thread."""
        if not self._reported:
            self._publish_held()
        if not self._has_claimed:
            self._has_claimed = True
            self._process_table.write(self._entry, claimed=1)
        if self._worker.activity.last - self._published_activity > ACTIVITY_EVERY:
            self._publish_activity()

    def watched(self) -> None:
        """Its watchdog has looked at what runs."""
        self._process_table.write(self._entry, watched=int(time.monotonic() * 1_000))

    def publish(self) -> None:
        """Say how the worker is."""
        worker = self._worker
        self._process_table.write(
            self._entry, running=worker.running, calls=worker.calls
        )
        self._publish_held()
        if worker.held:
            worker.activity()
        if worker.activity.last > self._published_activity:
            self._publish_activity()

    def _publish_held(self) -> None:
        with self._publishing:
            self._reported = 0  # first: who claims after the count says it again
            held = len(self._worker.held)
            self._process_table.write(self._entry, held=held)
            self._reported = held

    def _publish_activity(self) -> None:
        self._published_activity = self._worker.activity.last
        self._process_table.activity(lease_time(), conf.lease)
