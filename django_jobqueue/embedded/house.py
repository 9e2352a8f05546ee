"""The workers of this process, and what keeps them: all that ``runworkers`` has
processes for."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from dataclasses import replace
from typing import Final

from django_jobqueue.embedded.housekeeping import Housekeeping
from django_jobqueue.embedded.tenant import Tenant
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.workers import hygiene, identity
from django_jobqueue.workers.loop import Loop
from django_jobqueue.workers.process import Plan
from django_jobqueue.workers.roster import Roster

BEAT: Final = 0.25  # seconds between looks
HASTE: Final = 0.01  # the same while somebody waits for an end
SEATS: Final = 8  # for the worker, those that it replaced, and one for jobs alone
ALONE_AFTER: Final = 3.0  # seconds that a job that must run alone is left to others

_numbers = itertools.count(1)


class House(Loop):
    """Has one worker live in this process, and another one after it when it was
    restarted or has lost its lease."""

    name = "embedded worker"

    def __init__(self, plan: Plan, *, grace: float) -> None:
        super().__init__()
        self.roster = Roster(SEATS)
        self.tenants: list[Tenant] = []  # changed by its own thread alone
        self._plan = plan
        self._grace = grace
        self._upkeep = Housekeeping(self.roster, plan.queues)
        self._fill_at = 0.0
        self._is_closing = False
        self._told: deque[float | None] = deque()  # graces, as others said them
        self._has_made_room = False  # for a job that must run alone

    @property
    def tenant(self) -> Tenant | None:
        """The worker that claims; None while there is none."""
        ordinary = (t for t in self.tenants if not t.plan.alone)
        return next((t for t in ordinary if not t.is_leaving), None)

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
        for tenant in self.tenants:
            tenant.look()
        if any(tenant.is_last for tenant in self.tenants):
            self._end(None)
        self._upkeep.hear([tenant.worker.calls for tenant in self.tenants])
        self._clear()
        if self._is_closing and not self.tenants:
            self._stopping = True
        ending = any(t.is_leaving or t.plan.drain for t in self.tenants)
        return HASTE if ending else BEAT

    def close(self) -> None:
        """Everybody has left."""
        self._upkeep.stop()

    def _listen(self) -> None:
        """Do what others told it."""
        while self._told:
            self._end(self._told.popleft())

    def _end(self, grace: float | None) -> None:
        self._is_closing = True
        for tenant in self.tenants:
            tenant.leave(grace)

    def _fill(self) -> None:
        """Have a worker here, and now and then one for a job that runs alone."""
        try:
            if not self._upkeep.has_started:
                self._upkeep.start()
                hygiene.keep_connections()
            tenant = self.tenant
            if tenant is None:
                self._admit(replace(self._plan, listen=self.roster.can_listen))
            else:
                self._make_room(tenant)
        except StoreUnavailable as error:
            self._fill_at = time.monotonic() + error.retry_in

    def _make_room(self, tenant: Tenant) -> None:
        """Let a job that must run alone do so: with no other job in this process. It
        was there when a worker died, and is left to others first, who have a process
        for it."""
        if any(other.plan.alone for other in self.tenants):
            return
        if self._upkeep.alone_waits(ALONE_AFTER):
            self._has_made_room = True
            tenant.close_doors()
            if tenant.is_empty:
                self._upkeep.forget_alone()
                plan = replace(self._plan, alone=True, drain=True, listen=False)
                self._admit(replace(plan, threads=1, async_slots=1))
        elif self._has_made_room:
            self._has_made_room = False
            if not tenant.is_paused:
                tenant.open_doors()

    def _admit(self, plan: Plan) -> None:
        """Let a worker move in. Raises StoreUnavailable."""
        seat = self.roster.free()
        if seat is None:  # many are still leaving
            return
        name = f"{identity.name_of(os.getpid())}/embedded-{next(_numbers)}"
        tenant = Tenant(replace(plan, name=name), self.roster, seat, grace=self._grace)
        tenant.move_in()
        self.tenants.append(tenant)

    def _clear(self) -> None:
        """Let those move out who are done."""
        for tenant in [t for t in self.tenants if t.is_done]:
            self._upkeep.bury(tenant.move_out())
            self.tenants.remove(tenant)
