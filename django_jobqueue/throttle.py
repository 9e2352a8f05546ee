"""How much of a long work is done at once, and how long it rests between: pure."""

from __future__ import annotations

from typing import Final

AIM: Final = 0.2  # seconds that a chunk should take
SMALLEST: Final = 100  # rows
FIRST: Final = 500
LARGEST: Final = 5_000
REST: Final = 0.1  # of the time that a chunk took, for others
PERIOD: Final = 10.0  # seconds over which a rate is kept


class Throttle:
    """Chunks of about a fifth of a second; with a rate, no more than it allows."""

    def __init__(self, per_minute: int | None, now: float) -> None:
        self.size = FIRST  # rows to look at
        self._period = PERIOD if per_minute is None else max(PERIOD, 60 / per_minute)
        self._most = None if per_minute is None else int(per_minute * self._period / 60)
        self._until = now + self._period
        self._left = self._most

    @property
    def most(self) -> int | None:
        """Jobs that may be changed now; None is without a limit."""
        return self._left

    def did(self, *, changed: int, seconds: float, now: float) -> float:
        """Learn from a chunk; returns how long to rest, in seconds."""
        wanted = self.size * min(2.0, max(0.5, AIM / max(seconds, 0.001)))
        self.size = round(min(LARGEST, max(SMALLEST, wanted)))
        if self._left is None or self._most is None:
            return min(AIM, seconds * REST)
        self._left -= changed
        if self._left > 0 and now < self._until:
            return min(AIM, seconds * REST)
        rest = max(0.0, self._until - now)
        self._until = now + rest + self._period
        self._left = self._most
        return rest
