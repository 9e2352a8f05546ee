"""The workers of this process, and what keeps them: all that ``runworkers`` has
processes for."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from dataclasses import replace
from typing import Final

from django_jobqueue.embedded.keeper import EmbeddedKeeper
from django_jobqueue.embedded.life import EmbeddedLife
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution import connection_reset
from django_jobqueue.host.maintenance.quarantine import Quarantine
from django_jobqueue.host.restarts import Restarts
from django_jobqueue.processes import identity
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import Roster
from django_jobqueue.processes.worker_config import Plan

BEAT: Final = 0.25  # seconds between looks
HASTE: Final = 0.01  # the same while somebody waits for an end
SEATS: Final = 8  # for the worker, those that it replaced, and one for jobs alone
ALONE_AFTER: Final = 3.0  # seconds that a job that must run alone is left to others

_numbers = itertools.count(1)


class EmbeddedSupervisor(Loop):
    """Has one worker run in this process, and another one after it when it was
    restarted or has lost its lease."""

    name = "embedded worker"
    longest_after_error = 1.0  # somebody may wait for it to stop

    def __init__(self, plan: Plan, *, grace: float) -> None:
        super().__init__()
        self.roster = Roster(SEATS)
        self.lives: list[EmbeddedLife] = []  # changed by its own thread alone
        self._plan = plan
        self._grace = grace
        self._keeper = EmbeddedKeeper(self.roster, plan)
        self._restarts = Restarts()
        self._fill_at = 0.0
        self._is_closing = False
        self._told: deque[float | None] = deque()  # graces, as others said them
        self._quarantine = Quarantine()
        self._has_made_room = False  # for a job that must run alone

    @property
    def life(self) -> EmbeddedLife | None:
        """The worker that claims; None while there is none."""
        ordinary = (life for life in self.lives if not life.plan.alone)
        return next((life for life in ordinary if not life.is_leaving), None)

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended, so that nothing of it is left."""
        return self._thread is not None and not self._thread.is_alive()

    def join(self, timeout: float) -> bool:
        """Wait until it has ended; False if it has not after so many seconds."""
        assert self._thread is not None
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def leave(self, grace: float | None) -> None:
        """End: after the grace in any case; of several graces the one that is over
        first holds."""
        self._told.append(grace)
        self.wake()

    def tick(self) -> float:
        """Look after everybody."""
        self._listen()
        if not self._is_closing and time.monotonic() >= self._fill_at:
            self._fill()
        for life in self.lives:
            life.look()
        if any(life.is_last for life in self.lives):
            self._end(None)
        self._keeper.hear([life.worker.calls for life in self.lives])
        self._clear()
        if self._is_closing and not self.lives:
            self.stop(0)
        ending = any(life.is_leaving or life.plan.drain for life in self.lives)
        return HASTE if ending else BEAT

    def close(self) -> None:
        """All have ended."""
        self._keeper.stop()

    def _listen(self) -> None:
        """Do what others told it."""
        while self._told:
            self._end(self._told.popleft())

    def _end(self, grace: float | None) -> None:
        self._is_closing = True
        for life in self.lives:
            life.leave(grace)

    def _fill(self) -> None:
        """Have a worker here, and now and then one for a job that runs alone."""
        try:
            if not self._keeper.has_started:
                self._keeper.start()
                connection_reset.keep_connections()
            life = self.life
            if life is None:
                self._spawn(replace(self._plan, listen=self.roster.can_listen))
            else:
                self._make_room(life)
        except StoreUnavailable as error:
            self._fill_at = time.monotonic() + error.retry_in

    def _make_room(self, life: EmbeddedLife) -> None:
        """Let a job that must run alone do so: with no other job in this process. It
        was there when a worker died, and is left to others first, who have a process
        for it."""
        if any(other.plan.alone for other in self.lives):
            return
        if self._wants_alone():
            self._has_made_room = True
            life.close_doors()
            if life.is_empty:
                self._spawn(replace(self._plan.for_alone(), listen=False))
        elif self._has_made_room:
            self._has_made_room = False
            if not life.is_paused:
                life.open_doors()

    def _wants_alone(self) -> bool:
        """Whether a job that must run alone has been left to others for long enough."""
        now, since = time.monotonic(), self._keeper.alone_since
        if not since or now - since < ALONE_AFTER:
            return False
        return self._quarantine.wants_worker(self.roster.alone_seen_at, now)

    def _spawn(self, plan: Plan) -> None:
        """Start a worker. Raises StoreUnavailable."""
        seat = self.roster.free()
        if seat is None:  # many are still leaving
            return
        name = f"{identity.name_of(os.getpid())}/embedded-{next(_numbers)}"
        life = EmbeddedLife(
            replace(plan, name=name), self.roster, seat, grace=self._grace
        )
        life.begin()
        self.lives.append(life)
        now = time.monotonic()
        if life.has_failed:
            self._restarts.died(lived=0.0, now=now)
        else:
            self._restarts.begin_anew()
        self._fill_at = self._restarts.next_at

    def _clear(self) -> None:
        """Bury those who are done."""
        for life in [life for life in self.lives if life.is_done]:
            has_claimed = life.has_claimed
            self._keeper.bury(life.end())
            self.lives.remove(life)
            if life.plan.alone:
                self._quarantine.ended(time.monotonic(), has_claimed=has_claimed)
