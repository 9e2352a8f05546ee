"""The parent of a host's worker processes: spawns, reaps, replaces, stops them."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any, Final

from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.worker import identity
from django_jobqueue.worker.child import Child, fork, how_it_ended
from django_jobqueue.worker.dump import Dump
from django_jobqueue.worker.keeper import Keeper
from django_jobqueue.worker.life import (
    CANCEL,
    DRAIN,
    QUIT,
    RESUME,
    Life,
)
from django_jobqueue.worker.process import Plan
from django_jobqueue.worker.roster import DESIRES, Roster
from django_jobqueue.worker.stopping import Step, Stopping

logger = logging.getLogger("django_jobqueue.supervisor")

PAUSED_TOO_LONG: Final = 1.5  # seconds after which a stopped (SIGSTOP) child is killed
FENCE_AT: Final = 0.8  # of a lease without renewal
SHORT_LIFE: Final = (
    10.0  # seconds; children that die younger are replaced later and later
)
LONGEST_REST: Final = 5.0


class Supervisor:
    """Runs no handler, has no thread and no database connection, and therefore may
    fork.

    Its children: the worker processes, and a keeper that does what needs the database.
    """

    def __init__(self, plan: Plan, processes: int) -> None:
        self.plan = replace(plan, supervisor=identity.name_of(os.getpid()))
        self.processes = processes
        self.roster = Roster(2 * processes + 4)
        self.children: dict[int, Child] = {}
        self.keeper: Child | None = None
        self.stopping = Stopping(grace=conf.grace, cancel_grace=conf.cancel_grace)
        self._deaths = 0
        self._deaths_in_row = 0
        self._spawn_at = 0.0
        self.dump = Dump(conf.dump_dir, self.plan.supervisor)
        self._wakeup, self._waker = os.pipe()

    def run(self) -> int:
        """Run until told to stop, or drained; returns the exit code."""
        connections.close_all()
        self._listen_to_signals()
        self.roster.renewed_at = time.monotonic()
        self._start_keeper()
        while not self._is_over():
            self._sleep()
            self._reap()
            self._fence()
            self._obey()
            self._proceed()
            self._fill()
        self._end_keeper()
        unfinished = self.dump.merge()
        if unfinished:
            logger.warning(
                "%d unfinished jobs were released; see %s", unfinished, self.dump.path
            )
        logger.info("Stopped")
        return 1 if self.stopping.signals > 1 else 0

    # Signals and time.

    def _listen_to_signals(self) -> None:
        for end in (self._wakeup, self._waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
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
        rest = 0.5
        if self.stopping.next_at is not None:
            rest = min(rest, max(0.0, self.stopping.next_at - time.monotonic()))
        if self.stopping or self.plan.drain or not self.roster.keeper_is_ready:
            rest = min(rest, 0.02)
        ready, _, _ = select.select([self._wakeup], [], [], rest)
        if ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 1_024)

    def _is_over(self) -> bool:
        if self.children:
            return False
        if self.stopping:
            return True
        if self.processes > 0 or self.roster.buried < self._deaths:
            return False
        return not self.roster.alone_waiting

    # Children.

    def _fork(self, seat: int, live: Callable[[int], int]) -> Child:
        others = [child.control for child in self._everybody()]
        return fork(seat, live, (self._wakeup, self._waker, *others))

    def _everybody(self) -> list[Child]:
        return [*self.children.values(), *([self.keeper] if self.keeper else [])]

    def _start_keeper(self) -> None:
        def live(control: int) -> int:
            keeper = Keeper(
                roster=self.roster,
                control=control,
                queues=self.plan.queues,
                dump=self.dump,
            )
            return keeper.live()

        self.roster.buried = self._deaths  # it finds the dead of its predecessor itself
        self.keeper = self._fork(-1, live)

    def _fill(self) -> None:
        """Start what is missing."""
        if self.stopping or not self.roster.keeper_is_ready:
            return
        if self.keeper is None:
            self._start_keeper()
        if self.roster.alone_waiting and not any(
            child.alone for child in self.children.values()
        ):
            self._spawn(alone=True)
        ordinary = [c for c in self.children.values() if not c.alone and not c.replaced]
        missing = self.processes - len(ordinary)
        if time.monotonic() >= self._spawn_at:
            for _ in range(missing):
                self._spawn(alone=False)

    def _spawn(self, *, alone: bool) -> None:
        seat = self.roster.free()
        if seat is None:
            return
        plan = replace(self.plan, listen=self.roster.can_listen)
        if alone:
            plan = replace(plan, alone=True, drain=True, threads=1, async_slots=1)

        def live(control: int) -> int:
            life = Life(
                plan, roster=self.roster, seat=seat, control=control, dump=self.dump
            )
            return life.live()

        self.roster.clear(seat)
        child = self._fork(seat, live)
        child.alone = alone
        self.roster.write(seat, pid=child.pid, renewable=1)
        self.children[child.pid] = child

    def _reap(self) -> None:
        """Learn which children ended, were paused, or go on."""
        flags = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.get(pid)
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                if child is not None:
                    self._pause(child, os.WIFSTOPPED(status))
            elif child is not None:
                self._ended(child, os.waitstatus_to_exitcode(status))
            elif self.keeper is not None and pid == self.keeper.pid:
                self._keeper_ended(os.waitstatus_to_exitcode(status))

    def _pause(self, child: Child, paused: bool) -> None:
        child.paused_since = time.monotonic() if paused else None
        self.roster.write(child.seat, renewable=not paused)

    def _ended(self, child: Child, code: int) -> None:
        """A worker ended: have its jobs looked after, and make room for a successor."""
        seat = self.roster.seat(child.seat)
        self.roster.clear(child.seat)
        os.close(child.control)
        del self.children[child.pid]
        crashed = not seat.orderly and not child.fenced
        if self.stopping and code == -signal.SIGKILL:
            crashed = False  # by us, at the end of its time
        reason = how_it_ended(code, orderly=bool(seat.orderly))
        if child.fenced:
            reason = "its lease could not be renewed"
        if crashed:
            logger.error("Worker %s: %s", identity.name_of(child.pid), reason)
        if seat.worker:
            self._deaths += 1
            self._tell_keeper(
                {
                    "do": "bury",
                    "number": self._deaths,
                    "worker": seat.worker,
                    "name": identity.name_of(child.pid),
                    "crashed": crashed,
                    "reason": reason,
                }
            )
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

    def _keeper_ended(self, code: int) -> None:
        how = how_it_ended(code, orderly=False)
        logger.error("The keeper ended (%s); starting another", how)
        assert self.keeper is not None
        os.close(self.keeper.control)
        self.keeper = None

    def _tell_keeper(self, order: dict[str, Any]) -> None:
        if self.keeper is not None:
            self.keeper.tell(json.dumps(order).encode() + b"\n")

    # Leases.

    def _fence(self) -> None:
        """Kill what may no longer run: others may start its jobs any moment."""
        now = time.monotonic()
        cut_off = now - self.roster.renewed_at > conf.lease * FENCE_AT
        for child in list(self.children.values()):
            seat = self.roster.seat(child.seat)
            paused = child.paused_since is not None
            if paused and now - (child.paused_since or now) > PAUSED_TOO_LONG:
                logger.error("Worker %s is stopped (SIGSTOP); killing it", child.pid)
                child.kill()
            elif seat.lost or (cut_off and seat.running and not child.fenced):
                why = "was given up" if seat.lost else "could not be renewed in time"
                logger.error("Worker %s: its lease %s; killing it", child.pid, why)
                child.fenced = True
                child.kill()

    def _obey(self) -> None:
        """Do what operators ask of single workers, and replace those that hang."""
        for child in list(self.children.values()):
            seat = self.roster.seat(child.seat)
            if seat.condemned and not child.replaced:
                child.replaced = True  # its successor starts while it ends
            desire = DESIRES[seat.desired]
            if desire == "drain" and not seat.paused:
                self.roster.write(child.seat, paused=1)
                child.tell(DRAIN)
            elif desire == "resume" and seat.paused:
                self.roster.write(child.seat, paused=0)
                child.tell(RESUME)
            elif desire in ("stop", "restart") and not child.replaced:
                child.replaced = True
                self.processes -= desire == "stop"
                self.roster.write(child.seat, paused=0)
                child.tell(DRAIN)

    # Stopping.

    def _proceed(self) -> None:
        """Take the next steps of a stop."""
        for step in self.stopping.due(time.monotonic()):
            left = list(self.children.values())
            if step is Step.CANCEL and left:
                logger.warning("%d workers still run jobs: cancelling them", len(left))
            for child in left:
                if step is Step.KILL:
                    child.kill()
                else:
                    self.roster.write(child.seat, paused=0)
                    order = {Step.DRAIN: DRAIN, Step.CANCEL: CANCEL, Step.QUIT: QUIT}
                    child.tell(order[step])

    def _end_keeper(self) -> None:
        """Let the keeper deal with the last deaths, and end."""
        if self.keeper is None:
            return
        self._tell_keeper({"do": "stop"})
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            if os.waitpid(self.keeper.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.005)
        self.keeper.kill()
