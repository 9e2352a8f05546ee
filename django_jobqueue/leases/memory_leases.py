"""Leases in the memory of this process, for the tests of a project: nothing is shared
with other processes, and nothing is renewed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Final

from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.leases.held_lease import TAKEN_AWAY, HeldLease


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


def _reset_after_fork() -> None:
    """In the child of a fork: a thread of the parent may have held the lock."""
    memory._lock = threading.Lock()
    memory._held.clear()


os.register_at_fork(after_in_child=_reset_after_fork)
