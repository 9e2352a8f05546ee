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
from django_jobqueue.host.children import Family
from django_jobqueue.host.fencing import Fencing
from django_jobqueue.host.maintenance.quarantine import Quarantine
from django_jobqueue.processes import identity
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_state import memory_frozen, signals_handled
from django_jobqueue.processes.process_table import DESIRES, Roster, Seat
from django_jobqueue.processes.shutdown import Step, Stopping
from django_jobqueue.processes.wakeup_pipe import Bells
from django_jobqueue.processes.worker_config import Plan
from django_jobqueue.workers.unfinished_jobs import Dump
from django_jobqueue.workers.worker_main import (
    CALM_LOOKS,
    CANCEL,
    DRAIN,
    END,
    OF_LEASE,
    QUIT,
    RESUME,
)

logger = logging.getLogger("django_jobqueue.supervisor")

LOOK_EVERY: Final = 1.0  # seconds between looks at leases and at what is asked
ORDERS: Final = {Step.DRAIN: END, Step.CANCEL: CANCEL, Step.QUIT: QUIT}


class Supervisor:
    """Runs no handler, has no thread and no database connection, and so may fork."""

    def __init__(self, plan: Plan, processes: int) -> None:
        self.plan = replace(plan, supervisor=identity.name_of(os.getpid()))
        self.processes = processes
        self._bells = bells = Bells()
        self._bell = bells.supervisor
        self.roster = Roster(
            2 * processes + 4, bells, attempts=plan.threads + plan.async_slots
        )
        self.dump = Dump(conf.dump_dir, self.plan.supervisor)
        self.stopping = Stopping(grace=conf.grace, cancel_grace=conf.cancel_grace)
        self.family = Family(
            self.plan, self.roster, self.dump, keeper_bell=bells.keeper
        )
        self._fencing = Fencing(self.roster, self.family)
        self._quarantine = Quarantine()

    def run(self) -> int:
        """Run until told to stop, or drained; returns the exit code.

        It can be called once, in the main thread.
        """
        with (
            closing(self._bells),
            closing(self.family),
            memory_frozen(),
            signals_handled(self._stop_signal, wakes=self._bell.writer),
        ):
            self.roster.renewed_at = lease_time()
            self.family.keeper.ensure()
            while not self._is_over():
                self._look()
            self.family.keeper.end()
            self.dump.merge()
        logger.info("Stopped")
        return 1 if self.stopping.signals > 1 else 0

    def _look(self) -> None:
        self._sleep()
        for child, seat, code in self.family.reap():
            self._ended(child, seat, code)
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
            rest = conf.lease / CALM_LOOKS
        else:
            rest = min(LOOK_EVERY, conf.lease / OF_LEASE)
        if (start := self.family.next_start) is not None:
            rest = min(rest, max(0.0, start - now))
        if self.stopping.next_at is not None:
            rest = min(rest, max(0.0, self.stopping.next_at - now))
        if self.stopping or self.plan.drain or not self.roster.keeper_is_ready:
            rest = min(rest, 0.02)
        self._bell.wait(rest)

    def _may_rest(self) -> bool:
        """Whether there is no clock to watch, and it is woken when there is."""
        if self.family.is_paused or not self.roster.may_rest(lease_time(), conf.lease):
            return False
        return not any(seat.held for seat in self.roster)

    def _stir(self) -> None:
        self.roster.stir(lease_time(), conf.lease)

    def _is_over(self) -> bool:
        if self.family:
            return False
        if self.stopping:
            return True
        if self.processes > 0 or not self.family.keeper.is_done:
            return False
        return not self.roster.alone_seen_at

    # Births and deaths.

    def _fill(self) -> None:
        """Start what is missing. The keeper also while workers end: without it their
        leases would lapse."""
        self.family.keeper.ensure()
        if self.stopping or not self.roster.keeper_is_ready:
            return
        if self._wants_alone():
            self.family.spawn(alone=True)
            self._stir()
        if self.plan.drain and not self.family.keeper.is_done:
            return  # what the dead had is not there to be claimed yet
        ordinary = [c for c in self.family if not c.alone and not c.replaced]
        for _ in range(self.processes - len(ordinary)):
            self.family.spawn(alone=False)
            self._stir()

    def _wants_alone(self) -> bool:
        """Whether to start a process for a job that must run alone."""
        if any(child.alone for child in self.family):
            return False
        seen_at = self.roster.alone_seen_at
        return self._quarantine.wants_worker(seen_at, time.monotonic())

    def _ended(self, child: Child, seat: Seat, code: int) -> None:
        """A worker ended: have its jobs looked after, and make room for a successor."""
        self._stir()
        if child.alone:
            has_claimed = bool(seat.claimed)
            self._quarantine.ended(time.monotonic(), has_claimed=has_claimed)
        self._fencing.ended(child)
        crashed = not seat.orderly and not child.fenced and child.hang is None
        if self.stopping and code == -signal.SIGKILL:
            crashed = False  # by us, at the end of its time
        reason = how_it_ended(code, orderly=bool(seat.orderly))
        if child.fenced:
            reason = "its lease could not be renewed"
        elif child.hang is not None:
            reason = "killed, because a job held the interpreter's lock"
        elif child.has_left:
            reason = "killed, because a job put another program in its place"
        if crashed:
            now = time.monotonic()
            self.family.restarts.died(lived=now - child.born, now=now)
            self._tell(child, seat, reason)
        else:
            self.family.restarts.begin_anew()
        stopping = bool(self.stopping)
        self.family.bury(child, seat, crashed=crashed, reason=reason, stopping=stopping)
        if self.plan.drain and seat.orderly and not child.replaced:
            # It found nothing to run; but a job that ran alone may have left some.
            self.processes = 1 if child.alone else self.processes - 1

    def _tell(self, child: Child, seat: Seat, reason: str) -> None:
        """One that had a row may have had jobs, so each such end is told."""
        restarts = self.family.restarts
        if seat.worker or restarts.is_news(reason, time.monotonic()):
            name = identity.name_of(child.pid)
            logger.error("Worker %s: %s%s", name, reason, restarts.how_often)

    # What operators ask.

    def _obey(self) -> None:
        """Do what is asked of single workers, and replace those that hang."""
        for child in self.family:
            seat = self.roster.seat(child.seat)
            if seat.condemned and not child.replaced:
                child.replaced = True  # its successor starts while it ends
            desire = DESIRES[seat.desired]
            if desire == "drain" and not seat.paused:
                self.roster.write(child.seat, paused=1)
                self._order(child, DRAIN)
            elif desire == "resume" and seat.paused:
                self.roster.write(child.seat, paused=0)
                self._order(child, RESUME)
            elif desire in ("stop", "restart") and not child.replaced:
                child.replaced = True
                self.processes -= desire == "stop"
                self._order(child, END)

    def _proceed(self) -> None:
        """Take the next steps of a stop."""
        for step in self.stopping.due(time.monotonic()):
            if step is Step.CANCEL and self.family:
                logger.warning(
                    "%d workers still run jobs: cancelling them", len(self.family)
                )
            for child in self.family:
                if step is Step.KILL:
                    child.kill()
                else:
                    self._order(child, ORDERS[step])

    def _order(self, child: Child, order: bytes) -> None:
        self._stir()
        child.tell(order)
