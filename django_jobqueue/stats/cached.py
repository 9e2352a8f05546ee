"""Caches figures for some seconds, so that fifty open pages cost as much as one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class CachedValue(Generic[T]):
    """Keeps what was read, by a name, in the memory of this process."""

    def __init__(self) -> None:
        # One operation on a dict needs no lock, and a lock would need care at a fork.
        self._held: dict[str, tuple[float, T]] = {}

    def get(
        self,
        name: str,
        seconds: float,
        read: Callable[[], T],
        *,
        fits: Callable[[T], bool] = lambda value: True,
    ) -> T:
        """Return the value that was read at most this many seconds ago, if it fits, or
        read it now."""
        at, value = self._held.get(name, (None, None))
        is_fresh = at is not None and time.monotonic() < at + seconds
        if is_fresh and value is not None and fits(value):
            return value
        value = read()
        if value is not None:  # names of nothing would fill the memory
            self._held[name] = (time.monotonic(), value)
        return value

    def forget(self) -> None:
        """Read everything again."""
        self._held.clear()
