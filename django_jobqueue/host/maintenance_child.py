"""The maintenance process as the supervisor sees it: a child that it replaces when it
dies, and to which it reports dead workers."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from django_jobqueue.domain.log_events import Event
from django_jobqueue.host.child import NOT_KNOWN, Child, how_it_ended
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.maintenance_process import MaintenanceProcess
from django_jobqueue.host.restarts import Restarts
from django_jobqueue.host.scaling import plan_of
from django_jobqueue.processes.host_counters import HostCounters
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.shutdown import KILLED_ENDS, MAINTENANCE_ENDS
from django_jobqueue.processes.wakeups import WakeupPipe
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker_main import ENDED

logger = logging.getLogger("django_jobqueue.supervisor")

END_TRIES: Final = 3

Fork = Callable[[int, Callable[[int], int], Restarts], Child | None]


class MaintenanceChild:
    """Starts it, reports deaths to it until it has dealt with them, and ends it."""

    def __init__(
        self,
        process_table: ProcessTable,
        dump: UnfinishedJobsDump,
        *,
        wakeup: WakeupPipe,
        config: WorkerConfig,
        fork: Fork,
    ) -> None:
        self.child: Child | None = None
        self.restarts = Restarts()
        self.counters: HostCounters | None = None  # for metrics
        self._process_table = process_table
        self._dump = dump
        self._wakeup = wakeup
        self._config = config
        self._fork = fork
        self._deaths = 0
        # By number. The maintenance process may die of one; its successor gets them.
        self._unrecovered: dict[int, ProcessDeath] = {}

    @property
    def is_done(self) -> bool:
        """True if it has looked after the jobs of all dead workers."""
        return self._process_table.recovered >= self._deaths

    def change_config(self, config: WorkerConfig) -> None:
        """Workers have other slots or queues from now on."""
        self._config = config
        if self.child is not None:
            plan = plan_of(config, 1).to_json()
            _order(self.child, {"do": "plan", **plan})

    def ensure(self) -> None:
        """Start it, or its successor."""
        if self.child is None and self.restarts.is_due(time.monotonic()):
            self._start()

    def recover(self, death: ProcessDeath) -> None:
        """Have it look after the jobs of a worker that ended."""
        self._deaths += 1
        death = death._replace(number=self._deaths)
        self._forget_recovered()
        self._unrecovered[self._deaths] = death
        if self.child is not None:
            _order(self.child, {"do": "recover", **death.to_json()})

    def ended(self, code: int) -> None:
        """It has ended without an order to."""
        if self.child is None:
            return
        self.child.reap()
        now = time.monotonic()
        self.restarts.died(lived=now - self.child.born, now=now)
        self.child = None
        self._process_table.listener_is_gone()
        if self.counters is not None:
            self.counters.process_ended(self.counters.maintenance)
            self.counters.count_death("killed" if code < 0 else "exited")
        how, often = how_it_ended(code, orderly=False), self.restarts.how_often
        if self.restarts.note_cause(how, now):
            logger.error(
                "The maintenance process ended (%s%s); starting another",
                how,
                often,
                extra={"event": Event.MAINTENANCE_DIED},
            )

    def paused(self, is_so: bool) -> None:
        """It was stopped (SIGSTOP), or goes on. Meanwhile its listener is deaf; it says
        itself when it hears again."""
        if is_so:
            self._process_table.listener_is_gone()

    def end_if_paused(self, seconds: float) -> None:
        """Kill it if it was stopped (SIGSTOP) longer ago than this; a successor will
        start."""
        child = self.child
        if child is not None and child.is_paused_for(seconds, time.monotonic()):
            logger.error(
                "The maintenance process %s is stopped (SIGSTOP); killing it", child.pid
            )
            child.kill()

    def end(self) -> None:
        """Let it deal with the last deaths, and end; if it dies of them, its successor
        does so."""
        deadline = time.monotonic() + MAINTENANCE_ENDS
        for _ in range(END_TRIES):
            is_late = time.monotonic() > deadline
            if self.child is None and not (self.is_done or is_late):
                self._start()
            child, self.child = self.child, None
            if child is None or self._end(child, deadline) == ENDED:
                return

    def _end(self, child: Child, deadline: float) -> int:
        """Returns its exit code."""
        _order(child, {"do": "stop"})
        code = child.wait_for_exit(deadline - time.monotonic())
        if code is None:
            child.kill()
            code = child.wait_for_exit(KILLED_ENDS)
        child.reap()
        if self.counters is not None:
            self.counters.process_ended(self.counters.maintenance)
        return NOT_KNOWN if code is None else code

    def _start(self) -> None:
        self._forget_recovered()
        process_table, wakeup, dump, config = (
            self._process_table,
            self._wakeup,
            self._dump,
            self._config,
        )
        deaths = list(self._unrecovered.values())
        metrics = None if self.counters is None else self.counters.maintenance

        def live(order_pipe: int) -> int:
            return MaintenanceProcess(
                process_table=process_table,
                order_pipe=order_pipe,
                wakeup=wakeup,
                config=config,
                dump=dump,
                deaths=deaths,
                metrics=metrics,
            ).live()

        self.child = self._fork(-1, live, self.restarts)

    def _forget_recovered(self) -> None:
        recovered = self._process_table.recovered
        for number in [number for number in self._unrecovered if number <= recovered]:
            del self._unrecovered[number]


def _order(child: Child, order: dict[str, Any]) -> None:
    child.order(json.dumps(order).encode() + b"\n")
