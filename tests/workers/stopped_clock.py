"""A clock that stands until a test moves it."""

from __future__ import annotations


class StoppedClock:
    """Takes the place of the module ``time``."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def __call__(self) -> float:
        return self.now
