"""The parent of a host's worker processes: replaces, fences and stops them."""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import closing
from dataclasses import replace
from types import FrameType
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.host.child import Child, how_it_ended
from django_jobqueue.host.children import Children
from django_jobqueue.host.fencing import Fencing
from django_jobqueue.host.maintenance.quarantine import Quarantine
from django_jobqueue.processes import identity
from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_state import memory_frozen, signals_handled
from django_jobqueue.processes.process_table import DESIRES, ProcessEntry, ProcessTable
from django_jobqueue.processes.shutdown import Step, Stopping
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.unfinished_jobs import Dump
from django_jobqueue.workers.worker_main import (
    CANCEL,
    DRAIN,
    END,
    IDLE_LOOKS,
    OF_LEASE,
    QUIT,
    RESUME,
)

logger = logging.getLogger("django_jobqueue.supervisor")

LOOK_EVERY: Final = 1.0  # seconds between looks at leases and at what is asked
ORDERS: Final = {Step.DRAIN: END, Step.CANCEL: CANCEL, Step.QUIT: QUIT}


class Supervisor:
    """Runs no handler, has no thread and no database connection, and so may fork."""

    def __init__(self, config: WorkerConfig, processes: int) -> None:
        self.config = replace(config, supervisor=identity.name_of(os.getpid()))
        self.processes = processes
        self._wakeups = wakeups = WakeupPipes()
        self._wakeup = wakeups.supervisor
        self.process_table = ProcessTable(
            2 * processes + 4, wakeups, attempts=config.threads + config.async_slots
        )
        self.dump = Dump(conf.dump_dir, self.config.supervisor)
        self.stopping = Stopping(grace=conf.grace, cancel_grace=conf.cancel_grace)
        self.children = Children(
            self.config,
            self.process_table,
            self.dump,
            maintenance_wakeup=wakeups.maintenance,
        )
        self._fencing = Fencing(self.process_table, self.children)
        self._quarantine = Quarantine()

    def run(self) -> int:
        """Run until told to stop, or drained; returns the exit code.

        It can be called once, in the main thread.
        """
        with (
            closing(self._wakeups),
            closing(self.children),
            memory_frozen(),
            signals_handled(self._stop_signal, wakes=self._wakeup.writer),
        ):
            self.process_table.renewed_at = lease_time()
            self.children.maintenance.ensure()
            while not self._is_over():
                self._look()
            self.children.maintenance.end()
            self.dump.merge()
        logger.info("Stopped")
        return 1 if self.stopping.signals > 1 else 0

    def _look(self) -> None:
        self._sleep()
        for child, entry, code in self.children.reap():
            self._ended(child, entry, code)
        self._fencing.look()
        self._obey()
        self._proceed()
        self._fill()

    # Signals and time.

    def _stop_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopping.signal(time.monotonic())
        name = signal.Signals(number).name
        if self.stopping.signals == 1:
            logger.info(
                "%s: stopping. No job is claimed any more; running jobs have %g s to "
                "finish. A second signal stops at once.",
                name,
                conf.grace,
            )
        elif self.stopping.signals == 2:
            logger.warning(
                "%s again: stopping at once. Unfinished jobs are released and listed "
                "in %s",
                name,
                self.dump.where,
            )

    def _sleep(self) -> None:
        now = time.monotonic()
        if self._may_rest():
            rest = conf.lease / IDLE_LOOKS
        else:
            rest = min(LOOK_EVERY, conf.lease / OF_LEASE)
        if (start := self.children.next_start) is not None:
            rest = min(rest, max(0.0, start - now))
        if self.stopping.next_at is not None:
            rest = min(rest, max(0.0, self.stopping.next_at - now))
        if (
            self.stopping
            or self.config.drain
            or not self.process_table.maintenance_is_ready
        ):
            rest = min(rest, 0.02)
        self._wakeup.wait(rest)

    def _may_rest(self) -> bool:
        """Whether there is no clock to watch, and it is woken when there is."""
        if self.children.is_paused or not self.process_table.may_rest(
            lease_time(), conf.lease
        ):
            return False
        return not any(entry.held for entry in self.process_table)

    def _activity(self) -> None:
        self.process_table.activity(lease_time(), conf.lease)

    def _is_over(self) -> bool:
        if self.children:
            return False
        if self.stopping:
            return True
        if self.processes > 0 or not self.children.maintenance.is_done:
            return False
        return not self.process_table.quarantine_seen_at

    # Births and deaths.

    def _fill(self) -> None:
        """Start what is missing. The maintenance process also while workers end:
        without it their leases would lapse."""
        self.children.maintenance.ensure()
        if self.stopping or not self.process_table.maintenance_is_ready:
            return
        if self._wants_quarantine():
            self.children.spawn(quarantined=True)
            self._activity()
        if self.config.drain and not self.children.maintenance.is_done:
            return  # what the dead had is not there to be claimed yet
        ordinary = [c for c in self.children if not c.quarantined and not c.replaced]
        for _ in range(self.processes - len(ordinary)):
            self.children.spawn(quarantined=False)
            self._activity()

    def _wants_quarantine(self) -> bool:
        """Whether to start a process for a job that must run alone."""
        if any(child.quarantined for child in self.children):
            return False
        seen_at = self.process_table.quarantine_seen_at
        return self._quarantine.wants_worker(seen_at, time.monotonic())

    def _ended(self, child: Child, entry: ProcessEntry, code: int) -> None:
        """A worker ended: have its jobs looked after, and make room for a successor."""
        self._activity()
        if child.quarantined:
            has_claimed = bool(entry.claimed)
            self._quarantine.ended(time.monotonic(), has_claimed=has_claimed)
        self._fencing.ended(child)
        crashed = not entry.orderly and not child.fenced and child.hang is None
        if self.stopping and code == -signal.SIGKILL:
            crashed = False  # by us, at the end of its time
        reason = how_it_ended(code, orderly=bool(entry.orderly))
        if child.fenced:
            reason = "its lease could not be renewed"
        elif child.hang is not None:
            reason = "killed, because a job held the interpreter's lock"
        elif child.has_left:
            reason = "killed, because a job put another program in its place"
        if crashed:
            now = time.monotonic()
            self.children.restarts.died(lived=now - child.born, now=now)
            self._tell(child, entry, reason)
        else:
            self.children.restarts.reset()
        stopping = bool(self.stopping)
        self.children.bury(
            child, entry, crashed=crashed, reason=reason, stopping=stopping
        )
        if self.config.drain and entry.orderly and not child.replaced:
            # It found nothing to run; but a job that ran alone may have left some.
            self.processes = 1 if child.quarantined else self.processes - 1

    def _tell(self, child: Child, entry: ProcessEntry, reason: str) -> None:
        """One that had a row may have had jobs, so each such end is told."""
        restarts = self.children.restarts
        if entry.worker or restarts.is_news(reason, time.monotonic()):
            name = identity.name_of(child.pid)
            logger.error("Worker %s: %s%s", name, reason, restarts.how_often)

    # What operators ask.

    def _obey(self) -> None:
        """Do what is asked of single workers, and replace those that hang."""
        for child in self.children:
            entry = self.process_table.entry(child.entry)
            if entry.condemned and not child.replaced:
                child.replaced = True  # its successor starts while it ends
            desire = DESIRES[entry.desired]
            if desire == "drain" and not entry.paused:
                self.process_table.write(child.entry, paused=1)
                self._order(child, DRAIN)
            elif desire == "resume" and entry.paused:
                self.process_table.write(child.entry, paused=0)
                self._order(child, RESUME)
            elif desire in ("stop", "restart") and not child.replaced:
                child.replaced = True
                self.processes -= desire == "stop"
                self._order(child, END)

    def _proceed(self) -> None:
        """Take the next steps of a stop."""
        for step in self.stopping.due(time.monotonic()):
            if step is Step.CANCEL and self.children:
                logger.warning(
                    "%d workers still run jobs: cancelling them", len(self.children)
                )
            for child in self.children:
                if step is Step.KILL:
                    child.kill()
                else:
                    self._order(child, ORDERS[step])

    def _order(self, child: Child, order: bytes) -> None:
        self._activity()
        child.tell(order)
