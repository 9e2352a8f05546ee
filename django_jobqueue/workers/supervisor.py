"""The parent of a host's worker processes: replaces, fences and stops them."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from dataclasses import replace
from types import FrameType
from typing import Final

from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.workers import identity
from django_jobqueue.workers.bell import Bells
from django_jobqueue.workers.child import Child, how_it_ended
from django_jobqueue.workers.dump import Dump
from django_jobqueue.workers.family import Family
from django_jobqueue.workers.fencing import Fencing
from django_jobqueue.workers.lease_clock import lease_time
from django_jobqueue.workers.life import (
    CALM_LOOKS,
    CANCEL,
    DRAIN,
    END,
    OF_LEASE,
    QUIT,
    RESUME,
)
from django_jobqueue.workers.process import Plan
from django_jobqueue.workers.quarantine import Quarantine
from django_jobqueue.workers.roster import DESIRES, Roster, Seat
from django_jobqueue.workers.stopping import Step, Stopping

logger = logging.getLogger("django_jobqueue.supervisor")

SHORT_LIFE: Final = 10.0  # seconds; who dies younger is replaced later and later
LONGEST_REST: Final = 5.0
LOOK_EVERY: Final = 1.0  # seconds between looks at leases and at what is asked
ORDERS: Final = {Step.DRAIN: END, Step.CANCEL: CANCEL, Step.QUIT: QUIT}


class Supervisor:
    """Runs no handler, has no thread and no database connection, and so may fork."""

    def __init__(self, plan: Plan, processes: int) -> None:
        self.plan = replace(plan, supervisor=identity.name_of(os.getpid()))
        self.processes = processes
        bells = Bells()
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
        self._deaths_in_row = 0
        self._spawn_at = 0.0

    def run(self) -> int:
        """Run until told to stop, or drained; returns the exit code."""
        connections.close_all()
        gc.freeze()  # a collection in a child would copy the pages that all share
        self._listen_to_signals()
        self.roster.renewed_at = lease_time()
        self.family.ensure_keeper()
        while not self._is_over():
            self._sleep()
            for child, seat, code in self.family.reap():
                self._ended(child, seat, code)
            self._fencing.look()
            self._obey()
            self._proceed()
            self._fill()
        self.family.end_keeper()
        unfinished = self.dump.merge()
        if unfinished:
            logger.warning(
                "%d unfinished jobs were released; see %s", unfinished, self.dump.path
            )
        logger.info("Stopped")
        return 1 if self.stopping.signals > 1 else 0

    # Signals and time.

    def _listen_to_signals(self) -> None:
        signal.set_wakeup_fd(self._bell.writer, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop_signal)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

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
                self.dump.path,
            )

    def _sleep(self) -> None:
        now = time.monotonic()
        if self._may_rest():
            rest = conf.lease / CALM_LOOKS
        else:
            rest = min(LOOK_EVERY, conf.lease / OF_LEASE)
        if now < self._spawn_at:
            rest = min(rest, self._spawn_at - now)
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
        if self.processes > 0 or not self.family.is_buried:
            return False
        return not self.roster.alone_seen_at

    # Births and deaths.

    def _fill(self) -> None:
        """Start what is missing."""
        if self.stopping or not self.roster.keeper_is_ready:
            return
        self.family.ensure_keeper()
        if self._wants_alone():
            self.family.spawn(alone=True)
            self._stir()
        ordinary = [c for c in self.family if not c.alone and not c.replaced]
        if time.monotonic() >= self._spawn_at:
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
        if crashed:
            logger.error("Worker %s: %s", identity.name_of(child.pid), reason)
        stopping = bool(self.stopping)
        self.family.bury(child, seat, crashed=crashed, reason=reason, stopping=stopping)
        if self.plan.drain and seat.orderly and not child.replaced:
            # It found nothing to run; but a job that ran alone may have left some.
            self.processes = 1 if child.alone else self.processes - 1
        self._slow_down(child, crashed)

    def _slow_down(self, child: Child, crashed: bool) -> None:
        """A job that kills its worker at once must not make the host fork all day."""
        if not crashed or time.monotonic() - child.born > SHORT_LIFE:
            self._deaths_in_row = 0
            return
        self._deaths_in_row += 1
        if self._deaths_in_row > 1:
            rest = min(LONGEST_REST, 0.1 * 2 ** min(self._deaths_in_row, 10))
            self._spawn_at = time.monotonic() + rest

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
