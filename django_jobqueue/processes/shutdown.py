"""Decides the steps of a stop from signals and time."""

from __future__ import annotations

from enum import Enum
from typing import Final

LAST_WORDS: Final = 1.0  # seconds that a worker has to write what it knows


class Step(Enum):
    """An order of the supervisor to its workers."""

    DRAIN = "drain"  # claim nothing more, finish what runs
    CANCEL = "cancel"  # tell the handlers to stop
    QUIT = "quit"  # write what is known, and end
    KILL = "kill"


class Stopping:
    """First signal: drain; after the grace cancel, then quit, then kill. Second signal:
    quit at once. Each step is given once."""

    def __init__(self, *, grace: float, cancel_grace: float) -> None:
        self._grace = grace
        self._cancel_grace = cancel_grace
        self._config: list[tuple[float, Step]] = []
        self.signals = 0

    def __bool__(self) -> bool:
        return self.signals > 0

    def signal(self, now: float) -> None:
        """A stop signal arrived."""
        self.signals += 1
        if self.signals == 1:
            cancel = now + self._grace
            leave = cancel + self._cancel_grace
            self._config = [
                (now, Step.DRAIN),
                (cancel, Step.CANCEL),
                (leave, Step.QUIT),
                (leave + LAST_WORDS, Step.KILL),
            ]
        elif self.signals == 2:
            self._config = [(now, Step.QUIT), (now + LAST_WORDS, Step.KILL)]

    def due(self, now: float) -> list[Step]:
        """The steps to be taken now."""
        due = [step for moment, step in self._config if moment <= now]
        self._config = [entry for entry in self._config if entry[0] > now]
        return due

    @property
    def next_at(self) -> float | None:
        """The time of the next step; None if there is none."""
        return self._config[0][0] if self._config else None
