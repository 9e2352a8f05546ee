"""Rescues what dead workers held: our own children's at once, those of other hosts when
their lease has lapsed."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.rescue import Rescued, rescue
from django_jobqueue.workers.announcer import tell_rescued
from django_jobqueue.workers.loop import Loop
from django_jobqueue.workers.prospects import Prospects

logger = logging.getLogger("django_jobqueue.rescuer")

STRAYS_EVERY: Final = 4  # leases
STRAYS_AFTER: Final = 0.5  # seconds after a death, then twice that, up to the above
# Seconds between looks while a job that must run alone is due: its pause, or what uses
# up the limit of its type, may end any moment; whoever went for it may have found it
# locked.
ALONE_EVERY: Final = 1.0
REMEMBERED: Final = 10_000  # unfinished jobs that are listed when all stop


@dataclass(frozen=True, slots=True)
class Death:
    """A worker of this host that has ended."""

    worker: int
    name: str
    crashed: bool
    reason: str
    number: int = 0  # of the supervisor's count
    stopping: bool = False  # it ended because the whole host stops


class Rescuer(Loop):
    """Looks after the jobs of workers that are no more.

    It sleeps until the first lease can lapse, since leases only ever grow. After an
    outage of the database it waits for half a lease before it gives anybody up: every
    lease ran out while nobody could renew.
    """

    name = "rescuer"

    def __init__(
        self,
        connection: OwnConnection,
        prospects: Prospects,
        *,
        alone: Callable[[float], None],
        buried: Callable[[int], None],
    ) -> None:
        super().__init__()
        self.released: deque[Rescued] = deque(maxlen=REMEMBERED)  # for the dump
        self._connection = connection
        self._prospects = prospects
        self._alone = alone
        self._buried = buried
        self._deaths: deque[Death] = deque()
        self._patient_until = time.monotonic() + conf.lease / 2
        self._blind = False
        self._next_strays = 0.0
        self._strays_rest = self._longest_rest

    def report(self, death: Death) -> None:
        """A child has ended; from any thread."""
        self._deaths.append(death)

    @property
    def is_done(self) -> bool:
        """Whether every reported death was dealt with."""
        return not self._deaths

    def settle(self, seconds: float) -> None:
        """Wait so long until it has dealt with every death, in a thread that ticks."""
        deadline = time.monotonic() + seconds
        while not self.is_done and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self.is_done:
            logger.error(
                "The database does not answer; unfinished jobs are taken over when "
                "their lease of %g s has lapsed",
                conf.lease,
            )

    def tick(self) -> float:
        """Deal with the deaths reported, with lapsed leases, and with strays."""
        try:
            buried = self._bury()
            self._sweep()
            ahead = self._prospects.look(self, anew=bool(buried))
            if self._give_up(ahead.lapse):
                ahead = self._prospects.look(self, anew=True)
        except StoreUnavailable:
            self._blind = True
            raise
        lapse, alone = ahead.lapse, ahead.alone
        waits = alone is not None and alone <= 0
        self._alone(self._prospects.looked_at if waits else 0.0)
        if buried:
            self._buried(buried)
        rest = self._prospects.rest
        if lapse is not None:
            rest = min(rest, max(lapse + 0.05, 0.2))
        if waits or ahead.is_held_back:
            rest = min(rest, ALONE_EVERY)
        elif alone is not None:
            rest = min(rest, alone)
        if self._strays_rest < self._longest_rest:
            rest = min(rest, max(0.0, self._next_strays - time.monotonic()))
        return rest

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def _bury(self) -> int:
        """Look after the jobs of the dead; returns the number of the last one."""
        number = 0
        while self._deaths:
            death = self._deaths[0]
            workers.stopped(
                self._connection, [death.worker], end=death.reason, lost=death.crashed
            )
            rescued = rescue(
                self._connection,
                [death.worker],
                crashed=death.crashed,
                reason=death.reason,
            )
            if death.stopping:
                self.released += rescued
            self._record(death.worker, rescued)
            self._tell(death.name, death.reason, rescued)
            self._deaths.popleft()
            number = death.number
            self._expect_strays()
        return number

    def _give_up(self, lapse: float | None) -> bool:
        """Give up whoever's lease has lapsed; whether there was somebody."""
        if self._blind:
            self._blind = False
            self._patient_until = time.monotonic() + conf.lease / 2
        if lapse is None or lapse > 0 or time.monotonic() < self._patient_until:
            return False
        lost = workers.give_up(self._connection)
        for worker, name in lost.items():
            reason = "its lease lapsed: host lost, cut off or paused"
            rescued = rescue(self._connection, [worker], crashed=True, reason=reason)
            logger.warning("Worker %s is given up", name)
            self._record(worker, rescued)
            self._tell(name, reason, rescued)
            self._expect_strays()
        return bool(lost)

    @property
    def _longest_rest(self) -> float:
        return conf.lease * STRAYS_EVERY

    def _expect_strays(self) -> None:
        """What the dead sent last may still be under way on the server: a claim that
        waits for a lock, the commit of an atomic job. So look again, and soon."""
        self._strays_rest = STRAYS_AFTER
        self._next_strays = time.monotonic() + self._strays_rest

    def _sweep(self) -> None:
        now = time.monotonic()
        if now < self._next_strays:
            return
        self._strays_rest = min(2 * self._strays_rest, self._longest_rest)
        self._next_strays = now + self._strays_rest
        strays = workers.strays(self._connection)
        if strays:
            reason = "its worker is gone"
            rescued = rescue(self._connection, strays, crashed=True, reason=reason)
            self._tell("(gone)", reason, rescued)

    def _record(self, worker: int, rescued: list[Rescued]) -> None:
        """For whoever looks at the worker's row."""
        if rescued:
            counts = Counter(job.status for job in rescued)
            workers.record_rescued(self._connection, worker, counts)

    @staticmethod
    def _tell(name: str, reason: str, rescued: list[Rescued]) -> None:
        tell_rescued(rescued, reason)
        if rescued:
            again = sum(job.status == "queued" for job in rescued)
            logger.warning(
                "Worker %s: %s; %d of its jobs are queued again, %d archived",
                name,
                reason,
                again,
                len(rescued) - again,
            )
