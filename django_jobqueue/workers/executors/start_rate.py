"""How fast jobs start that were claimed ahead: slower than their run times say where
other processes have the CPU, or where outcomes wait to be written."""

from __future__ import annotations

import time
from typing import Final

FIRST: Final = 400.0  # jobs a second, until it is known, and at least
GROWTH: Final = 1.5  # from claim to claim, since other processes have pauses
SAMPLES: Final = 10  # jobs
LONGEST_WAIT: Final = 0.25  # seconds


class StartRate:
    """Measured from claim to claim. Eight processes on two cores that went by run times
    alone held jobs for more than a second, and gave every fifth one back."""

    def __init__(self) -> None:
        self._per_second = FIRST
        self._since = 0.0  # time.monotonic()
        self._waiting = 0  # jobs, then

    def claimed(self, jobs: int, *, waiting: int) -> None:
        """So many come to those that still wait."""
        now, started = time.monotonic(), self._waiting - waiting
        if started >= SAMPLES:
            seen = started / max(now - self._since, 0.001)
            self._per_second = max(FIRST, min(seen, GROWTH * self._per_second))
        self._since, self._waiting = now, waiting + jobs

    def gave_back(self) -> None:
        """None of them waits any more, though they did not start."""
        self._waiting = 0

    @property
    def most_prefetched(self) -> int:
        """The most jobs to have claimed ahead, so that none waits for long."""
        return int(LONGEST_WAIT * self._per_second)
