"""What the maintenance process of a host does, in two threads of this process."""

from __future__ import annotations

import logging
from typing import Final

from django_jobqueue.domain.registry import registry
from django_jobqueue.host.maintenance.burial import ProcessDeath
from django_jobqueue.host.maintenance.maintenance_loops import MaintenanceLoops
from django_jobqueue.host.maintenance.maintenance_process import (
    find_dead,
    find_out_listen,
)
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import OwnConnection

logger = logging.getLogger("django_jobqueue.maintenance")

LAST_WORDS: Final = 1.5  # seconds to deal with the last deaths
JOIN: Final = 1.0  # seconds for a loop to end


class EmbeddedMaintenance:
    """Leases, rescue, expiry, pruning."""

    def __init__(self, process_table: ProcessTable, config: WorkerConfig) -> None:
        self._process_table = process_table
        self._config = config
        self.has_started = False
        self._calls: list[int] = []
        self.alone_since = 0.0  # time.monotonic(); since then each look found a job

    def start(self) -> None:
        """Do what must come before the first claim, then begin. Raises
        StoreUnavailable."""
        predecessors = self._get_ready()
        pooled = not self._process_table.can_listen
        self._loops = MaintenanceLoops(
            self._config, pooled=pooled, quarantined=self._report_quarantine
        )
        self._rescuer = self._loops.rescuer
        self._renewer = Renewer(
            self._process_table, OwnConnection("renewer", pooled=pooled)
        )
        for predecessor in predecessors:
            self._rescuer.report(predecessor)
        try:
            self._renewer.start()
            self._loops.start()
        except RuntimeError:  # there is no room for a thread; it is tried again
            self._renewer.stop(0)
            raise
        self.has_started = True

    def hear(self, calls: list[int]) -> None:
        """Have it look at once what operators ask, if a worker heard that they do."""
        if sum(calls) > sum(self._calls):
            self._renewer.wake()
        self._calls = calls

    def bury(self, death: ProcessDeath) -> None:
        """Look after what a worker left."""
        self._rescuer.report(death)
        self._loops.hurry(self._rescuer)

    def stop(self) -> None:
        """Deal with the last deaths; end the loops and close their connections."""
        if not self.has_started:
            return
        self._rescuer.settle(LAST_WORDS)
        for loop in (self._renewer, self._loops):
            loop.stop(0)
        for loop in (self._renewer, self._loops):
            loop.stop(JOIN)

    def _get_ready(self) -> list[ProcessDeath]:
        first = OwnConnection("maintenance", pooled=True)
        second = OwnConnection("maintenance", pooled=True)
        try:
            job_types.declare(first, registry)
            predecessors = find_dead(first)
            self._process_table.can_listen = find_out_listen(first, second)
        finally:
            first.close()
            second.close()
        self._process_table.renewed_at = lease_time()
        return predecessors

    def _report_quarantine(self, seen_at: float) -> None:
        self._process_table.quarantine_seen_at = seen_at
        if not seen_at:
            self.alone_since = 0.0
        elif not self.alone_since:
            self.alone_since = seen_at
