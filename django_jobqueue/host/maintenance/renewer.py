"""Renews the leases of this host's workers, in one statement."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.hangs import is_silent
from django_jobqueue.processes import identity
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import DESIRES, EASE, Roster, Seat
from django_jobqueue.store import cancel, workers
from django_jobqueue.store.connection import OwnConnection

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 1.0  # seconds between looks at the seats
AGAIN_AFTER: Final = 0.25  # the same while a worker's row is locked by somebody
SAY_EVERY: Final = 60.0  # seconds


class Renewer(Loop):
    """Somebody other than the handlers keeps the claims: a handler that holds the
    interpreter lock does not look dead, and one that is dead is not kept alive.

    Leases are renewed every third of one. When none of the workers has had a job for as
    long as a lease, they are renewed for longer and more seldom, until one has a job or
    is asked for something.
    """

    name = "renewer"

    def __init__(self, roster: Roster, connection: OwnConnection) -> None:
        super().__init__()
        self._roster = roster
        self._connection = connection
        self._renewed: set[int] = set()
        # Of each worker, as it was looked at last: see Seat.
        self._signs: dict[int, tuple[int, int]] = {}
        self._is_asked = False
        self._is_eased = False
        self._next = 0.0  # lease_time()
        self._said_locked_at: dict[int, float] = {}  # by pid; lease_time()

    def wake(self) -> None:
        """Renew now, and learn what is asked."""
        self._is_asked = True
        super().wake()

    def look(self) -> None:
        """End a long rest: somebody has something to do."""
        super().wake()

    def tick(self) -> float:
        """Renew all that the supervisor says are running."""
        seats = {s.worker: s for s in self._roster if s.worker and s.renewable}
        began = lease_time()
        calm = self._is_calm(seats.values(), began)
        self._hear(seats)
        if self._is_due(seats.keys(), calm, began):
            self._renew(seats, calm, began)
        for seat in seats.values():
            self._hear_for(seat)
        rest = self._next - began
        if not seats.keys() <= self._renewed:
            return min(AGAIN_AFTER, rest)
        if self._roster.may_rest(began, conf.lease):
            return rest
        return min(LOOK_EVERY, rest)

    def _renew(self, seats: Mapping[int, Seat], calm: bool, began: float) -> None:
        """Raises StoreUnavailable."""
        self._is_asked, self._next = False, 0.0
        beats = [
            workers.Beat(s.worker, s.running, identity.rss(s.pid), bool(s.draining))
            for s in seats.values()
        ]
        longer = conf.lease * EASE if calm else 0.0
        try:
            found = workers.renew(self._connection, beats, conf.lease + longer)
        except StoreUnavailable as error:
            error.retry_in = min(error.retry_in, conf.lease / 10)
            raise
        renewed = {id: asked for id, asked in found.items() if asked is not None}
        self._renewed = set(renewed)
        self._is_eased = calm
        self._next = began + (longer if calm else conf.lease / 3)
        self._write_leases(seats, renewed, began, calm=calm)
        for worker, seat in seats.items():
            if worker in renewed:
                self._pass_on(seat, renewed[worker])
            elif worker in found:
                self._say_locked(seat)
            else:
                logger.error("Worker %s was given up by others", seat.pid)
                self._roster.write(seat.number, lost=1)
                self._roster.call_supervisor()

    def _write_leases(
        self,
        seats: Mapping[int, Seat],
        renewed: Collection[int],
        began: float,
        *,
        calm: bool,
    ) -> None:
        """Tell the supervisor from when the leases count: first of those that were not
        renewed, so that no lease seems to be longer than it is."""
        before = max(1, int(self._roster.renewed_at * 1_000))
        for worker, seat in seats.items():
            if worker not in renewed and not seat.unrenewed:
                self._roster.write(seat.number, unrenewed=before)
        self._roster.renewed_at = began
        for seat in self._roster:
            if seat.worker in renewed:
                self._roster.write(seat.number, eased=calm, unrenewed=0)
            elif seat.worker not in seats:
                self._roster.write(seat.number, eased=0)

    def _say_locked(self, seat: Seat) -> None:
        now = lease_time()
        if now - self._said_locked_at.get(seat.pid, -math.inf) >= SAY_EVERY:
            self._said_locked_at[seat.pid] = now
            logger.warning(
                "Worker %s: its row in jobqueue_worker is locked by another "
                "transaction, so its lease cannot be renewed; the worker is ended "
                "before it lapses",
                seat.pid,
            )

    def _pass_on(self, seat: Seat, asked: workers.Asked) -> None:
        """What operators ask of a worker."""
        self._roster.write(seat.number, inquiry=asked.inquiry)
        if asked.desired in DESIRES and asked.desired != DESIRES[seat.desired]:
            desire = DESIRES.index(asked.desired)
            self._roster.write(seat.number, desired=desire)
            self._roster.call_supervisor()

    def _hear_for(self, seat: Seat) -> None:
        """Find out whether a job is cancelled in a worker that cannot hear of it,
        because a handler holds the interpreter's lock. Raises StoreUnavailable."""
        if not seat.held or seat.unwanted or not is_silent(seat.watched / 1_000):
            return
        running = self._roster.attempts(seat.number).running()
        if ids := [attempt.job for attempt in running]:
            try:
                unwanted = cancel.requested_long_ago(self._connection, ids, conf.grace)
            except StoreUnavailable as error:
                error.retry_in = min(error.retry_in, conf.lease / 10)
                raise
            if unwanted:
                self._roster.write(seat.number, unwanted=1)
                self._roster.call_supervisor()

    def _hear(self, seats: Mapping[int, Seat]) -> None:
        """Learn at once what operators ask, if a worker heard that they do; and tell at
        once that it drains, or no longer does."""
        signs = {worker: (seat.calls, seat.draining) for worker, seat in seats.items()}
        if any(self._signs.get(w, (0, 0)) != sign for w, sign in signs.items()):
            self._is_asked = True
        self._signs = signs

    def _is_due(self, seated: Set[int], calm: bool, now: float) -> bool:
        """Whether it is time, or somebody came, asks, or has something to do again."""
        if self._is_asked or (self._is_eased and not calm):
            return True
        return now >= self._next or not seated <= self._renewed

    def _is_calm(self, seats: Iterable[Seat], now: float) -> bool:
        """Whether nobody has had anything to do for as long as a lease."""
        if any(seat.held or seat.draining for seat in seats):
            self._roster.stir(now, conf.lease)
        return self._roster.is_calm(now, conf.lease)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()
