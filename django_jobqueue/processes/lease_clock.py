"""Compares the clocks that leases are judged by: this machine's, and the database's."""

from __future__ import annotations

import math
import time
from typing import Final

# Linux has a clock that counts sleep; elsewhere Python knows of none.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def lease_time() -> float:
    """Seconds since this machine started; they also pass while it is suspended.

    A lease goes on while a laptop or a virtual machine sleeps, and time.monotonic()
    stands still.
    """
    return time.clock_gettime(_CLOCK)


class ClockWatch:
    """Notices that the database's clock was set forward."""

    def __init__(self) -> None:
        self._clock = math.inf  # as it was seen last
        self._seen_at = 0.0  # lease_time() before that

    def see(self, clock: float, before: float, after: float) -> float:
        """Seconds by which it went further than time did since it was seen last; less
        than zero if it did not.

        ``clock`` is what it said between ``before`` and ``after``, both lease_time().
        """
        went, passed = clock - self._clock, after - self._seen_at
        self._clock, self._seen_at = clock, before
        return went - passed
