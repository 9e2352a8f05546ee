"""Attempts to take one lease, again and again, in the database or in memory."""

from __future__ import annotations

import os
import random
import threading
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Final
from uuid import uuid4

from django_jobqueue.conf import conf
from django_jobqueue.contrib.leases import process_leases
from django_jobqueue.contrib.leases.held_lease import HeldLease, current_owner, memory
from django_jobqueue.contrib.leases.lease_rows import Answer, Claimant
from django_jobqueue.domain.databases import check_alias
from django_jobqueue.exceptions import LeaseUnavailable, StoreUnavailable
from django_jobqueue.processes import identity
from django_jobqueue.processes.shared_listener import (
    CHECK_HEARD,
    CHECK_UNHEARD,
    SharedListener,
    Wake,
)
from django_jobqueue.store.notify import News

IN_MEMORY: Final = 0.02  # seconds between two attempts
WHILE_LOCKED: Final = 0.25  # the same while a lease that lapsed cannot be taken over

_listener = SharedListener("lease wait", News.LEASE)


def _reset_after_fork() -> None:
    """In the child of a fork: the listening thread does not exist there."""
    global _listener
    _listener = SharedListener("lease wait", News.LEASE)


os.register_at_fork(after_in_child=_reset_after_fork)


class Attempts(ABC):
    """One wish for a lease. ``close`` it in any case, and ``give_up`` if the lease is
    no longer wanted: an attempt may go on in another thread."""

    def __init__(self, name: str, ttl: float, wait: float | None) -> None:
        self.name = name
        self.owner = current_owner()
        self._ttl = ttl
        self._wait = wait
        self._deadline = None if wait is None else time.monotonic() + wait
        self._lock = threading.Lock()  # for these two
        self._lease: HeldLease | None = None
        self._is_given_up = False

    def attempt(self) -> HeldLease | None:
        """The lease, if it is free. Raises StoreUnavailable if no time is left."""
        lease = self._take()
        if lease is None:
            return None
        lease.owner = self.owner
        with self._lock:
            self._lease = lease
            if not self._is_given_up:
                return lease
        lease.release()
        return None

    def check_wait(self) -> None:
        """Raises LeaseUnavailable if the time is over, RuntimeError if the caller has
        the lease."""
        if self._is_own():
            raise RuntimeError(
                f"The lease {self.name!r} is held by this very thread or task, which "
                "would wait for itself: leases are not reentrant. Pass the lease that "
                "is held on to the code that needs it."
            )
        if self._is_over():
            raise LeaseUnavailable(self.name, self._holder(), self._wait or 0.0)

    def seconds_until_next(self) -> float:
        """Seconds until the next attempt, unless woken."""
        pause = self._pause()
        if self._deadline is None:
            return pause
        return max(0.0, min(pause, self._deadline - time.monotonic()))

    def give_up(self) -> None:
        """Release the lease if it was taken, or is being taken."""
        with self._lock:
            self._is_given_up, lease = True, self._lease
        if lease is not None:
            lease.release()

    def _is_over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    @abstractmethod
    def listening(self, wake: Wake) -> AbstractContextManager[None]:
        """Have ``wake`` called in this block when the lease may be free."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what attempts need."""

    @abstractmethod
    def _take(self) -> HeldLease | None:
        """The lease, if it is free."""

    @abstractmethod
    def _pause(self) -> float:
        """Seconds until the next attempt, if there is time."""

    @abstractmethod
    def _is_own(self) -> bool:
        """True if the thread or task that wants it holds it."""

    @abstractmethod
    def _holder(self) -> str:
        """Its holder."""


class DatabaseAttempts(Attempts):
    """In the database, on the connection that renews the leases of this process."""

    def __init__(self, name: str, ttl: float, wait: float | None) -> None:
        super().__init__(name, ttl, wait)
        check_alias(conf.database, is_given=False)
        holder = identity.name_of(os.getpid())
        self._claimant = Claimant(
            name=name, token=uuid4(), ttl=ttl, holder=holder, host=identity.host()
        )
        self._answer = Answer(0)
        self._error: StoreUnavailable | None = None
        self._renewer = process_leases.enter()

    def listening(self, wake: Wake) -> AbstractContextManager[None]:
        """Listen for its release."""
        return _listener.listening(self.name, wake)

    def close(self) -> None:
        """Let go of the connection."""
        process_leases.leave(self._renewer)

    def _take(self) -> HeldLease | None:
        self._error = None
        try:
            lease, self._answer = self._renewer.take(self._claimant)
        except StoreUnavailable as error:
            if self._is_over():
                raise
            self._error = error
            return None
        return lease

    def _pause(self) -> float:
        try:
            return self._seconds_until_free()
        except StoreUnavailable as error:
            return error.retry_in

    def _seconds_until_free(self) -> float:
        """When it may be free. Raises StoreUnavailable."""
        if self._error is not None:
            return self._error.retry_in
        if self._answer.is_unawaited:
            self._renewer.wait_for(self.name)
            return 0.0  # it may have become free before that
        if conf.listen is not False and not _listener.hears:
            self._renewer.try_listening()
        lapse = self._answer.seconds_left
        if lapse <= 0:
            return WHILE_LOCKED
        longest = CHECK_HEARD if _listener.hears else CHECK_UNHEARD
        return min(longest, lapse) * random.uniform(1, 1.05)

    def _is_own(self) -> bool:
        return self._renewer.holds(self.name, self.owner)

    def _holder(self) -> str:
        return self._answer.holder


class MemoryAttempts(Attempts):
    """In memory, for the tests of a project."""

    def listening(self, wake: Wake) -> AbstractContextManager[None]:
        """There is nothing to listen to."""
        return nullcontext()

    def close(self) -> None:
        """There is nothing to let go."""

    def _take(self) -> HeldLease | None:
        return memory.take(self.name, self._ttl)

    def _pause(self) -> float:
        return IN_MEMORY

    def _is_own(self) -> bool:
        return memory.holds(self.name, self.owner)

    def _holder(self) -> str:
        return identity.name_of(os.getpid())
