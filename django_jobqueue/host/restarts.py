"""When a process that died is started again."""

from __future__ import annotations

from typing import Final

SHORT_LIFE: Final = 10.0  # seconds; who dies younger is replaced later and later
SHORTEST_REST: Final = 0.1  # seconds
LONGEST_REST: Final = 5.0
TOLD_EVERY: Final = 60.0  # seconds between reports of the same trouble


class Restarts:
    """At once; but what dies young again and again must not make the host fork all
    day, nor fill its log.

    All times are those of ``time.monotonic()``.
    """

    def __init__(self) -> None:
        self.in_row = 0  # deaths of the young
        self.next_at = 0.0
        self._told_at: float | None = None
        self._cause = ""

    @property
    def how_often(self) -> str:
        """For the end of a sentence about a death."""
        return f", {self.in_row} times in a row" if self.in_row > 1 else ""

    def is_due(self, now: float) -> bool:
        """Whether another one may be started."""
        return now >= self.next_at

    def died(self, *, lived: float, now: float) -> None:
        """One died after so many seconds; zero: it could not be started."""
        if lived > SHORT_LIFE:
            self.reset()
            return
        self.in_row += 1
        if self.in_row > 1:
            rest = SHORTEST_REST * 2 ** min(self.in_row, 10)
            self.next_at = now + min(LONGEST_REST, rest)

    def reset(self) -> None:
        """One ended in good order."""
        self.in_row = 0
        self.next_at = 0.0

    def is_news(self, cause: str, now: float) -> bool:
        """Whether this cause of a death is to be told: not again and again."""
        told_at, self._cause, before = self._told_at, cause, self._cause
        is_old = told_at is not None and now - told_at < TOLD_EVERY
        if self.in_row > 1 and cause == before and is_old:
            return False
        self._told_at = now
        return True

    def speaks_up(self, now: float) -> bool:
        """Whether one that starts now is to tell at length why it fails."""
        told_at = self._told_at
        return self.in_row < 2 or told_at is None or now - told_at >= TOLD_EVERY
