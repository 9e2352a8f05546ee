"""A lease that this process holds; and leases in memory, for the tests of a project."""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Self

from django.db import connections, transaction

from django_jobqueue.conf import conf
from django_jobqueue.enqueueing import immediate_jobs
from django_jobqueue.exceptions import LeaseLost

FORKED = "it belongs to the process that this one was forked from"
RELEASED = "it was released"
TAKEN_AWAY = "it was taken away, or taken over"


class HeldLease(ABC):
    """A lease that was taken; a ``with`` block releases it at its end.

    ``name`` and ``ttl`` are those of the call. ``fence`` is a number greater than that
    of any earlier holder: write it with each effect, and refuse effects with a smaller
    one.
    """

    def __init__(self, name: str, fence: int, ttl: float) -> None:
        self.name = name
        self.fence = fence
        self.ttl = ttl  # seconds
        self.owner = current_owner()
        self._pid = os.getpid()
        self._is_released = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} fence={self.fence}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    @property
    def is_lost(self) -> bool:
        """True if others are known to be free to take it, or it was released. Makes no
        query."""
        return bool(self._reason())

    def check(self) -> None:
        """Raise LeaseLost if the lease is known to be lost.

        It takes less than a microsecond and makes no query. That an operator took the
        lease away is known at the next renewal, within a third of ``ttl``; that it
        could not be renewed for ``ttl`` seconds, as after a pause of the process, is
        known at once, by this machine's clock. A lost lease stays lost.
        """
        if reason := self._reason():
            raise LeaseLost(self.name, reason)

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """A transaction on the jobs' database that commits only while the lease is
        held.

        It may be long: the lease is renewed meanwhile, and taking it over or away waits
        for its end. Within another transaction it is a savepoint, and the lease is kept
        until the outer one ends. Raises LeaseLost before the block if the lease is
        lost.
        """
        self.check()
        with transaction.atomic(using=conf.database):
            if not self._lock():
                self._lose(TAKEN_AWAY)
                self.check()
            yield

    def release(self) -> None:
        """Release the lease, unless it was lost or released. If the database cannot be
        reached, others have to wait until the lease lapses."""
        if self._is_released or self._pid != os.getpid():
            return
        self._is_released = True
        self._release()

    def _reason(self) -> str:
        """Why the lease is not held; empty if it is, as far as is known."""
        if self._pid != os.getpid():
            return FORKED
        return RELEASED if self._is_released else self._loss()

    @abstractmethod
    def _loss(self) -> str:
        """Why the lease is lost; empty if it is not, as far as is known."""

    @abstractmethod
    def _lose(self, reason: str) -> None:
        """It is lost from now on."""

    @abstractmethod
    def _lock(self) -> bool:
        """True if it is held; if so, until the end of the open transaction."""

    @abstractmethod
    def _release(self) -> None:
        """Let others have it."""


def current_owner() -> object:
    """The async task that runs here, or else the thread."""
    try:
        running = asyncio.current_task()
    except RuntimeError:
        running = None
    return running or threading.current_thread()


class MemoryLease(HeldLease):
    """A lease that this process alone knows of; only an operator takes it away."""

    def __init__(self, name: str, fence: int, ttl: float) -> None:
        super().__init__(name, fence, ttl)
        self._lost = ""

    def _loss(self) -> str:
        return self._lost

    def _lose(self, reason: str) -> None:
        self._lost = reason

    def _lock(self) -> bool:
        return not self._lost

    def _release(self) -> None:
        memory.release(self)


class MemoryLeases:
    """The holders of leases; fences grow as they do in the database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, MemoryLease] = {}
        self._fences: dict[str, int] = {}

    def take(self, name: str, ttl: float) -> MemoryLease | None:
        """Take a lease if it is free."""
        with self._lock:
            if name in self._held:
                return None
            lease = MemoryLease(name, self._grow(name), ttl)
            self._held[name] = lease
            return lease

    def release(self, lease: MemoryLease) -> None:
        """Let others have it."""
        with self._lock:
            if self._held.get(lease.name) is lease:
                del self._held[lease.name]

    def take_away(self, names: Iterable[str]) -> list[str]:
        """Take leases from their holders; returns the names of those that were held."""
        with self._lock:
            held = [name for name in names if name in self._held]
            for name in held:
                self._held.pop(name)._lose(TAKEN_AWAY)
                self._grow(name)
            return held

    def holds(self, name: str, owner: object) -> bool:
        """True if this thread or task holds the lease of this name."""
        with self._lock:
            lease = self._held.get(name)
        return lease is not None and lease.owner is owner

    def clear(self) -> None:
        """Nobody holds a lease any more."""
        self.take_away(list(self._held))

    def _grow(self, name: str) -> int:
        fence = self._fences[name] = self._fences.get(name, 0) + 1
        return fence


def is_in_memory() -> bool:
    """True if leases are in memory: where enqueues run jobs, and in the transaction of
    a test, which another connection does not see."""
    if conf.mode != "queue":
        return True
    wrapper = connections[conf.database]
    blocks = getattr(wrapper, "atomic_blocks", ())
    return any(getattr(block, "_from_testcase", False) for block in blocks)


memory: Final = MemoryLeases()
immediate_jobs.memory.also_clear.append(memory.clear)


def _reset_after_fork() -> None:
    """In the child of a fork: a thread of the parent may have held the lock."""
    memory._lock = threading.Lock()
    memory._held.clear()


os.register_at_fork(after_in_child=_reset_after_fork)
