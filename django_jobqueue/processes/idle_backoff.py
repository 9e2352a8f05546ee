"""How long a worker rests that finds nothing to do, and whether it is to be woken."""

from __future__ import annotations

import time
from typing import Final

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.halving import BRIEF

# The first ones are short, because a job may have been committed just before this
# worker said that it listens.
FIRST: Final = (0.05, 0.05, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds

# Jobs that come so fast, for so long, are polled for.
APART: Final = 0.0025  # seconds from the end of a claim to the next one
FAST_AFTER: Final = 0.05  # seconds
POLL: Final = 0.005  # seconds
LOCKED_REST: Final = 2.0  # seconds until a row that is locked is written to again


class Rests:
    """Longer from round to round, until something is found."""

    def __init__(self) -> None:
        self._round = 0

    def begin_anew(self) -> None:
        """Something was found."""
        self._round = 0

    def next(self, longest: float) -> float:
        """Seconds to rest after one more round that found nothing."""
        rest = FIRST[self._round] if self._round < len(FIRST) else longest
        self._round += 1
        return min(rest, longest)


class Stream:
    """Whether jobs come so fast that a notification of each is a waste: for those who
    enqueue, whose commits wait for each other, and for the worker, whose claims get
    larger when it rests for a moment between them."""

    def __init__(self) -> None:
        self.is_fast = False
        self._since = 0.0  # time.monotonic()
        self._last = 0.0

    def see(self, taken: int, began: float, now: float) -> None:
        """Take note of what a round claimed that began then and ends now."""
        if not taken or (began - self._last > APART and not self.is_fast):
            self._since = now
        self._last = now
        self.is_fast = now - self._since >= FAST_AFTER


class Sign:
    """Says in the worker's row whether enqueues are to notify."""

    def __init__(self, worker: int, connection: OwnConnection) -> None:
        self.is_out = False
        self._worker = worker
        self._connection = connection
        self._again_at = 0.0  # time.monotonic()

    def put(self, out: bool) -> bool:
        """Put the sign out, or take it in; False if that cannot be done now, since
        somebody has locked the row: then the worker polls. Raises StoreUnavailable."""
        if out == self.is_out:
            return True
        if time.monotonic() < self._again_at:
            return False
        try:
            with self._connection.patience(BRIEF):
                workers.set_listening(self._connection, self._worker, out)
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
            self._again_at = time.monotonic() + LOCKED_REST
            return False
        self.is_out = out
        return True
