"""The maintenance process: renews leases, rescues, expires and prunes, so that no
handler can starve it.

It is a child of the supervisor, which forks and therefore has neither threads nor
database connections of its own.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from typing import Any

from django_jobqueue import observers, signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.host_plans import HostPlan
from django_jobqueue.domain.series import Series
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.host.scaling import configured
from django_jobqueue.processes import identity
from django_jobqueue.processes.forking import ORPHANED
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.processes.shutdown import LEAST_FLUSH, LOOPS_END, SIGNALS_SENT
from django_jobqueue.processes.wakeups import WakeupPipe
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.outage_log import outages
from django_jobqueue.workers.process_counters import EVERY, ProcessCounters
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker_main import ENDED

logger = logging.getLogger("django_jobqueue.maintenance")


class MaintenanceProcess:
    """Runs maintenance, and takes orders through a pipe.

    ``deaths`` are those that its predecessor has not dealt with.
    """

    def __init__(
        self,
        *,
        process_table: ProcessTable,
        order_pipe: int,
        wakeup: WakeupPipe,
        config: WorkerConfig,
        dump: UnfinishedJobsDump,
        deaths: Sequence[ProcessDeath] = (),
        metrics: SharedValue | None = None,
    ) -> None:
        self._metrics = metrics  # where to publish counters
        self._counters: ProcessCounters | None = None
        self._process_table = process_table
        self._maintenance = HostMaintenance(process_table, config)
        self._order_pipe = order_pipe
        self._wakeup = wakeup
        self._dump = dump
        self._deaths = [*deaths]  # to be reported
        self._ours = {death.worker for death in deaths} | self._entered()
        self._received = b""
        self._orders: list[dict[str, Any]] = []

    def live(self) -> int:
        """Get ready, then work until told to stop; returns the exit code."""
        identity.name_process("jq:maintenance")
        signals.send(signals.process_started, None, process="maintenance")
        if self._metrics is not None:
            self._counters = ProcessCounters(self._metrics)
        if not self._get_ready():
            return ENDED
        ours = self._ours | self._entered()
        self._maintenance.start(ours=ours, deaths=self._deaths)
        self._deaths.clear()
        while not self._take_orders():
            self._report_deaths()
            if self._read(FOREVER if self._counters is None else EVERY):
                self._maintenance.check_workers()
            self._publish()
        self._report_deaths()
        self._finish()
        self._maintenance.stop(LOOPS_END)
        self._publish()
        until = time.monotonic() + SIGNALS_SENT
        announcer.flush(SIGNALS_SENT)
        observers.flush(max(until - time.monotonic(), LEAST_FLUSH))
        return ENDED

    def _publish(self) -> None:
        if self._counters is not None:
            is_up = not outages.goes_on
            gauges: Series = {"jobqueue_worker_database_up": {(): is_up}}
            self._counters.publish(self._maintenance.rescuer.counts.series, gauges)

    def _get_ready(self) -> bool:
        """Prepare for the first claim; False if told to stop meanwhile."""
        while True:
            try:
                self._maintenance.get_ready()
            except StoreUnavailable as error:
                self._read(error.retry_in)
                if self._take_orders():
                    if self._deaths:
                        logger.error(
                            "The database does not answer; unfinished jobs are taken "
                            "over when their lease of %g s has lapsed",
                            conf.lease,
                        )
                    return False
            else:
                return True

    def _entered(self) -> set[int]:
        """The workers in the process table."""
        return {entry.worker for entry in self._process_table if entry.worker}

    def _read(self, seconds: float) -> bool:
        """Wait for orders; returns whether the wakeup pipe rang."""
        rang, ready = self._wakeup.wait(seconds, self._order_pipe)
        if ready:
            received = os.read(self._order_pipe, 65_536)
            if not received:
                os._exit(ORPHANED)
            self._received += received
            *lines, self._received = self._received.split(b"\n")
            self._orders += [json.loads(line) for line in lines]
        return rang

    def _take_orders(self) -> bool:
        """Take the orders that arrived; returns whether one of them was to stop."""
        orders, self._orders = self._orders, []
        stop = False
        for order in orders:
            match order.pop("do"):
                case "stop":
                    stop = True
                case "plan":
                    plan = HostPlan.of_json(order)
                    config = configured(self._maintenance.config, plan)
                    self._maintenance.change_config(config)
                case _:
                    self._deaths.append(ProcessDeath.of_json(order))
        return stop

    def _report_deaths(self) -> None:
        """Have the rescuer deal with the deaths that it does not know of."""
        for death in self._deaths:
            self._maintenance.recover(death)
        self._deaths.clear()

    def _finish(self) -> None:
        """Deal with the last deaths, and list the jobs that were still running."""
        self._maintenance.settle()
        if self._dump.path is None:
            return  # the workers have listed theirs, and the rescuer their number
        self._dump.add(
            "maintenance",
            [
                {"id": str(job.id), "job_type": job.job_type, "became": job.status}
                for job in self._maintenance.rescuer.released
            ],
        )
