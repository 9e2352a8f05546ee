"""The children of a supervisor: worker processes, and a keeper that does what needs
the database."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from django_jobqueue.workers import identity
from django_jobqueue.workers.bell import Bell
from django_jobqueue.workers.child import Child, fork, how_it_ended
from django_jobqueue.workers.dump import Dump
from django_jobqueue.workers.hangs import Hang
from django_jobqueue.workers.keeper import Keeper
from django_jobqueue.workers.life import Life
from django_jobqueue.workers.process import Plan
from django_jobqueue.workers.roster import Roster, Seat

logger = logging.getLogger("django_jobqueue.supervisor")

LAST_WORK: Final = 2.5  # seconds that the keeper has for the last deaths


class Family:
    """Forks them, learns of their ends, and has the keeper bury the dead."""

    def __init__(
        self, plan: Plan, roster: Roster, dump: Dump, *, keeper_bell: Bell
    ) -> None:
        self.workers: dict[int, Child] = {}  # by process id
        self._plan = plan
        self._roster = roster
        self._dump = dump
        self._keeper_bell = keeper_bell
        self._keeper: Child | None = None
        self._deaths = 0

    def __iter__(self) -> Iterator[Child]:
        """The worker processes; they may end meanwhile."""
        return iter(list(self.workers.values()))

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def is_buried(self) -> bool:
        """Whether the keeper has looked after the jobs of all who died."""
        return self._roster.buried >= self._deaths

    @property
    def is_paused(self) -> bool:
        """Whether somebody was stopped (SIGSTOP)."""
        return any(child.paused_since is not None for child in self._everybody())

    def ensure_keeper(self) -> None:
        """Start the keeper, or another one after it died."""
        if self._keeper is not None:
            return
        plan, roster, dump = self._plan, self._roster, self._dump
        bell = self._keeper_bell

        def live(control: int) -> int:
            return Keeper(
                roster=roster,
                control=control,
                bell=bell,
                queues=plan.queues,
                dump=dump,
            ).live()

        roster.buried = self._deaths  # it finds the dead of its predecessor itself
        self._keeper = self._fork(-1, live)

    def spawn(self, *, alone: bool) -> None:
        """Start a worker process; ``alone``: for one job that must run alone."""
        roster, dump = self._roster, self._dump
        seat = roster.free()
        if seat is None:
            return
        plan = replace(self._plan, listen=roster.can_listen)
        if alone:
            plan = replace(plan, alone=True, drain=True, threads=1, async_slots=1)

        def live(control: int) -> int:
            return Life(
                plan, roster=roster, seat=seat, control=control, dump=dump
            ).live()

        roster.clear(seat)
        roster.attempts(seat).clear()
        child = self._fork(seat, live)
        child.alone = alone
        roster.write(seat, pid=child.pid, renewable=1)
        self.workers[child.pid] = child

    def reap(self) -> Iterator[tuple[Child, Seat, int]]:
        """Learn who was paused, goes on, or ended; yields the workers that ended, with
        what their seats said and their exit codes."""
        flags = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._find(pid)
            if child is None:
                continue
            if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                self._pause(child, os.WIFSTOPPED(status))
            elif child is self._keeper:
                self._keeper_ended(os.waitstatus_to_exitcode(status))
            else:
                seat = self._leave(child)
                yield child, seat, os.waitstatus_to_exitcode(status)

    def bury(
        self, child: Child, seat: Seat, *, crashed: bool, reason: str, stopping: bool
    ) -> None:
        """Have the keeper look after the jobs of a worker that ended.

        ``stopping``: because the whole host stops; its unfinished jobs are listed.
        """
        if not seat.worker:
            return  # it ended before it had a row
        hang = child.hang or Hang()
        self._deaths += 1
        self._tell_keeper(
            {
                "do": "bury",
                "number": self._deaths,
                "worker": seat.worker,
                "name": identity.name_of(child.pid),
                "crashed": crashed,
                "reason": reason,
                "stopping": stopping,
                "timed_out": [str(job) for job in hang.timed_out],
                "suspects": [str(job) for job in hang.suspects],
            }
        )

    def end_paused_keeper(self, seconds: float) -> None:
        """Kill a keeper that was stopped (SIGSTOP) so long ago; another will start."""
        keeper = self._keeper
        if keeper is not None and keeper.is_paused_for(seconds, time.monotonic()):
            logger.error("The keeper %s is stopped (SIGSTOP); killing it", keeper.pid)
            keeper.kill()

    def end_keeper(self) -> None:
        """Let the keeper deal with the last deaths, and end."""
        if self._keeper is None:
            return
        self._tell_keeper({"do": "stop"})
        deadline = time.monotonic() + LAST_WORK
        while time.monotonic() < deadline:
            if os.waitpid(self._keeper.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.005)
        self._keeper.kill()

    def _everybody(self) -> list[Child]:
        keeper = [self._keeper] if self._keeper is not None else []
        return [*self.workers.values(), *keeper]

    def _find(self, pid: int) -> Child | None:
        return next((child for child in self._everybody() if child.pid == pid), None)

    def _fork(self, seat: int, live: Callable[[int], int]) -> Child:
        others = [child.control for child in self._everybody()]
        return fork(seat, live, others)

    def _pause(self, child: Child, paused: bool) -> None:
        child.paused_since = time.monotonic() if paused else None
        if child is not self._keeper:
            self._roster.write(child.seat, renewable=not paused)

    def _leave(self, child: Child) -> Seat:
        seat = self._roster.seat(child.seat)
        self._roster.clear(child.seat)
        os.close(child.control)
        del self.workers[child.pid]
        return seat

    def _keeper_ended(self, code: int) -> None:
        how = how_it_ended(code, orderly=False)
        logger.error("The keeper ended (%s); starting another", how)
        assert self._keeper is not None
        os.close(self._keeper.control)
        self._keeper = None

    def _tell_keeper(self, order: dict[str, Any]) -> None:
        if self._keeper is not None:
            self._keeper.tell(json.dumps(order).encode() + b"\n")
