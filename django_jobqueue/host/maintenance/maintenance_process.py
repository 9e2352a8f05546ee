"""The process that does what a host needs whatever its handlers do: leases, rescue,
expiry, pruning.

It is a child of the supervisor, which forks and therefore has neither threads nor
database connections of its own.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.host.maintenance.burial import ProcessDeath
from django_jobqueue.host.maintenance.maintenance_loops import MaintenanceLoops
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.processes import identity
from django_jobqueue.processes.forking import ORPHANED
from django_jobqueue.processes.idle import WakeupPipe
from django_jobqueue.processes.listener import can_listen
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import job_types, worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.unfinished_jobs import Dump
from django_jobqueue.workers.worker_main import ENDED

logger = logging.getLogger("django_jobqueue.maintenance")

LAST_WORDS: Final = 1.5  # seconds to deal with the last deaths


class MaintenanceProcess:
    """Does what must go on whatever the handlers do.

    ``deaths`` are those that its predecessor has not dealt with.
    """

    def __init__(
        self,
        *,
        process_table: ProcessTable,
        control: int,
        wakeup: WakeupPipe,
        config: WorkerConfig,
        dump: Dump,
        deaths: Sequence[ProcessDeath] = (),
    ) -> None:
        self._process_table = process_table
        self._control = control
        self._wakeup = wakeup
        self._config = config
        self._dump = dump
        self._deaths = [*deaths]  # to be reported
        self._ours = {death.worker for death in deaths} | self._seated()
        self._predecessors: list[ProcessDeath] = []
        self._heard = b""
        self._orders: list[dict[str, Any]] = []

    def live(self) -> int:
        """Get ready, do it until told to stop; returns the exit code."""
        if not self._get_ready():
            return ENDED
        pooled = not self._process_table.can_listen
        self._loops = MaintenanceLoops(
            self._config,
            pooled=pooled,
            quarantined=self._report_quarantine,
            buried=self._say_buried,
        )
        self._rescuer = self._loops.rescuer
        renewer = Renewer(self._process_table, OwnConnection("renewer", pooled=pooled))
        for predecessor in self._predecessors:
            self._rescuer.report(predecessor)
        self._report_deaths()  # after the predecessors, which have no number
        self._loops.start()
        renewer.start()
        self._process_table.maintenance_is_ready = True
        while not self._stop_ordered():
            self._report_deaths()
            if self._read(FOREVER):
                renewer.look()
        self._report_deaths()
        self._finish()
        renewer.stop(0.2)
        self._loops.stop(0.2)
        announcer.flush(LAST_WORDS)
        return ENDED

    def _get_ready(self) -> bool:
        """What comes before the first claim; False if told to stop meanwhile."""
        first = OwnConnection("maintenance", pooled=True)
        second = OwnConnection("maintenance", pooled=True)
        while True:
            try:
                job_types.declare(first, registry)
                dead = find_dead(first)
                self._process_table.can_listen = find_out_listen(first, second)
            except StoreUnavailable as error:
                self._read(error.retry_in)
                if self._stop_ordered():
                    if self._deaths:
                        logger.error(
                            "The database does not answer; unfinished jobs are taken "
                            "over when their lease of %g s has lapsed",
                            conf.lease,
                        )
                    return False
            else:
                first.close()
                second.close()
                # Of those of our own supervisor we are told, and it knows the cause.
                ours = self._ours | self._seated()
                self._predecessors = [one for one in dead if one.worker not in ours]
                return True

    def _seated(self) -> set[int]:
        return {entry.worker for entry in self._process_table if entry.worker}

    def _report_quarantine(self, seen_at: float) -> None:
        if seen_at != self._process_table.quarantine_seen_at:
            self._process_table.quarantine_seen_at = seen_at
            self._process_table.call_supervisor()

    def _say_buried(self, number: int) -> None:
        self._process_table.buried = number
        self._process_table.call_supervisor()

    def _read(self, seconds: float) -> bool:
        """Wait for orders; returns whether it was woken."""
        rang, ready = self._wakeup.wait(seconds, self._control)
        if ready:
            said = os.read(self._control, 65_536)
            if not said:
                os._exit(ORPHANED)
            self._heard += said
            *lines, self._heard = self._heard.split(b"\n")
            self._orders += [json.loads(line) for line in lines]
        return rang

    def _stop_ordered(self) -> bool:
        """Take note of what was said; True if it was to stop."""
        orders, self._orders = self._orders, []
        stop = False
        for order in orders:
            if order.pop("do") == "stop":
                stop = True
            else:
                self._deaths.append(ProcessDeath.of_json(order))
        return stop

    def _report_deaths(self) -> None:
        """Have the rescuer deal with those that it does not know of."""
        if self._deaths:
            for death in self._deaths:
                self._rescuer.report(death)
            self._deaths.clear()
            self._loops.hurry(self._rescuer)

    def _finish(self) -> None:
        """Deal with the last deaths, and write down what was still running."""
        self._rescuer.settle(LAST_WORDS)
        if self._dump.path is None:
            return  # the workers have said which they are, and the rescuer how many
        self._dump.add(
            "maintenance",
            [
                {"id": str(job.id), "job_type": job.job_type, "became": job.status}
                for job in self._rescuer.released
            ],
        )


def find_dead(connection: OwnConnection) -> list[ProcessDeath]:
    """Workers of this host whose process is surely gone: their supervisor was killed,
    and nobody needs to wait for their leases. Raises StoreUnavailable."""
    found = worker_rows.predecessors(connection, identity.host())
    return [
        ProcessDeath(worker, f"#{worker}", True, "its supervisor died")
        for worker, other in found.items()
        if identity.is_dead(other)
    ]


def find_out_listen(first: OwnConnection, second: OwnConnection) -> bool:
    """Whether LISTEN works, tried on two connections that are ``pooled``, unless a
    setting says. Raises StoreUnavailable."""
    if conf.listen is not None:
        return conf.listen
    works = can_listen(first, second)
    if not works:
        logger.warning(
            "LISTEN hears nothing: this looks like a transaction pooler. Polling "
            "instead. For pickup within milliseconds give the settings of this host a "
            "direct connection."
        )
    return works
