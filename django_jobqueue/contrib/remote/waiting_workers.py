"""Requests of remote workers that wait for jobs in this process: who is woken, and who
asks the database."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connections

MOST_ASKING: Final = 8  # requests at once; each needs a connection meanwhile
FOLLOWERS: Final = 2  # that are woken after a request that got jobs


class WaitingWorkers:
    """Requests that wait, in groups of those that would claim the same jobs.

    Only the first of a group looks for jobs; when it gets some, it wakes the next ones.
    So a job costs a claim or two, however many wait. While more wait than may ask at
    once, they hold no connection: 200 would need twice what a PostgreSQL has.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[Hashable, deque[threading.Event]] = {}
        self._waiting = 0
        self._places = threading.BoundedSemaphore(MOST_ASKING)

    @contextmanager
    def waiting(self, group: Hashable, woken: threading.Event) -> Iterator[None]:
        """In this block the request waits. Whoever is first after it is woken when it
        goes, and some others as well if it says that it ``got_jobs``."""
        with self._lock:
            self._groups.setdefault(group, deque()).append(woken)
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                members = self._groups[group]
                was_first = members[0] is woken
                members.remove(woken)
                self._waiting -= 1
                if not members:
                    del self._groups[group]
                elif was_first:
                    members[0].set()

    def is_first(self, group: Hashable, woken: threading.Event) -> bool:
        """True if this request looks for the jobs of its group."""
        with self._lock:
            members = self._groups.get(group)
            return members is not None and members[0] is woken

    def got_jobs(self, group: Hashable, woken: threading.Event) -> None:
        """There may be more of them, for the next ones of the group."""
        with self._lock:
            others = (one for one in self._groups.get(group, ()) if one is not woken)
            for _, other in zip(range(FOLLOWERS), others, strict=False):
                other.set()

    @contextmanager
    def asking(self, alias: str) -> Iterator[None]:
        """In this block the request uses the database."""
        with self._places:
            try:
                yield
            finally:
                connection = connections[alias]
                if self._waiting > MOST_ASKING and not connection.in_atomic_block:
                    connection.close()
