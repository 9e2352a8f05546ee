"""Divides long work into chunks, with waits between them."""

from __future__ import annotations

from typing import Final

AIM: Final = 0.2  # seconds that a chunk should take
SMALLEST: Final = 100  # rows
FIRST: Final = 500
LARGEST: Final = 5_000
PAUSE_SHARE: Final = 0.1  # of the time that a chunk took, for others
TICK: Final = (
    1.0  # seconds; the work that a rate allows in this time may be done at once
)
ROUNDING: Final = 1e-9


class ChunkThrottle:
    """Chunks of about a fifth of a second; with a rate, no more than it allows.

    A rate is spread evenly: of 3,000 jobs a minute 50 are done each second, and of 20 a
    minute one every three seconds.
    """

    def __init__(
        self, per_minute: int | None, now: float, *, largest: int = LARGEST
    ) -> None:
        self.size = FIRST  # rows to look at
        self._largest = largest
        self._rate = None if per_minute is None else per_minute / 60  # a second
        self._portion = max(1.0, float(int((self._rate or 0.0) * TICK)))
        self._allowed = self._portion
        self._at = now

    @property
    def most(self) -> int | None:
        """Jobs that may be changed now; None is without a limit."""
        return None if self._rate is None else int(self._allowed + ROUNDING)

    def did(self, *, changed: int, seconds: float, now: float) -> float:
        """Learn from a chunk; returns how long to rest, in seconds."""
        wanted = self.size * min(2.0, max(0.5, AIM / max(seconds, 0.001)))
        self.size = round(min(self._largest, max(SMALLEST, wanted)))
        pause = min(AIM, seconds * PAUSE_SHARE)
        if self._rate is None:
            return pause
        self._earn(now)
        self._allowed -= changed
        if self._allowed + ROUNDING < 1:
            pause = max(0.0, (self._portion - self._allowed) / self._rate)
            self._earn(now + pause)
        return pause

    def _earn(self, now: float) -> None:
        """Add what the rate allows since the last time, up to one portion: missed time
        is not made up for all at once."""
        assert self._rate is not None
        earned = self._allowed + self._rate * max(0.0, now - self._at)
        self._allowed = min(self._portion + 1, earned)
        self._at = max(self._at, now)
