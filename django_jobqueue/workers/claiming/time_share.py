"""A small share of a worker's time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LONGEST_SAVED: Final = 0.1  # seconds of a share that are kept for later
LONG_SCAN: Final = 0.05  # seconds; of scans of very many lanes, what is longer has a
LONG_SCAN_SHARE: Final = 0.2  # share of the time of whoever scans


class TimeShare:
    """Lets something be done in a share of the time, however long each takes."""

    def __init__(self, share: float, *, free: float = 0.0) -> None:
        """Of each, the first ``free`` seconds do not count."""
        self._share = share
        self._free = free
        self._left = LONGEST_SAVED  # seconds
        self._at = time.monotonic()

    def may_begin(self) -> bool:
        """True if there is time left for one."""
        self._pass_time()
        return self._left > 0

    def took(self, seconds: float) -> None:
        """Record one that took so many seconds."""
        self._left -= max(0.0, seconds - self._free)

    def begin(self) -> Callable[[], bool]:
        """Begin something that takes its time in steps; the function says whether there
        is time left for another one."""
        last = time.monotonic()

        def may_go_on() -> bool:
            nonlocal last
            now = time.monotonic()
            self.took(now - last)
            last = now
            return self.may_begin()

        return may_go_on

    @property
    def seconds_until_free(self) -> float:
        """Until there is time for one."""
        self._pass_time()
        return max(0.0, -self._left / self._share)

    def _pass_time(self) -> None:
        now = time.monotonic()
        self._left = min(LONGEST_SAVED, self._left + (now - self._at) * self._share)
        self._at = now
