"""Decides the steps of a stop from signals and time."""

from __future__ import annotations

from enum import Enum
from typing import Final

# How long the steps of an end may take, in seconds. Those within a process fit into
# the time after which its parent kills it.
WORKER_STOPS: Final = 2.0  # a worker writes outcomes, sends signals: nobody kills it
WORKER_WRITES: Final = 0.7  # the same once it was told to quit
WORKER_QUITS: Final = 1.0  # all of its end, with the list of unfinished jobs
RECOVERY_ENDS: Final = 1.5  # the maintenance process takes the last jobs of the dead,
LOOPS_END: Final = 0.2  # has each of its two threads end,
SIGNALS_SENT: Final = 1.5  # and lets receivers have the last signals
LEAST_FLUSH: Final = 0.2  # for observers, when the rest took all the time
MAINTENANCE_ENDS: Final = 4.0  # all of its end
ANSWERS_END: Final = 0.5  # the exporter sends its last answers,
EXPORTER_ENDS: Final = 1.0  # and ends
KILLED_ENDS: Final = 1.0  # the system, with a process that was killed


class Step(Enum):
    """An order of the supervisor to its workers."""

    END = "end"  # claim nothing more, finish what runs, then end
    CANCEL = "cancel"  # tell the handlers to stop
    QUIT = "quit"  # write what is known, and end
    KILL = "kill"


class Stopping:
    """First signal: end; after the grace cancel, then quit, then kill. Second signal:
    quit at once. Each step is given once."""

    def __init__(self, *, grace: float, cancel_grace: float) -> None:
        self._grace = grace
        self._cancel_grace = cancel_grace
        self._steps: list[tuple[float, Step]] = []
        self.signals = 0

    def __bool__(self) -> bool:
        return self.signals > 0

    def signal(self, now: float) -> None:
        """A stop signal arrived."""
        self.signals += 1
        if self.signals == 1:
            cancel = now + self._grace
            quit_at = cancel + self._cancel_grace
            self._steps = [
                (now, Step.END),
                (cancel, Step.CANCEL),
                (quit_at, Step.QUIT),
                (quit_at + WORKER_QUITS, Step.KILL),
            ]
        elif self.signals == 2:
            self._steps = [(now, Step.QUIT), (now + WORKER_QUITS, Step.KILL)]

    def due(self, now: float) -> list[Step]:
        """The steps to be taken now."""
        due = [step for moment, step in self._steps if moment <= now]
        self._steps = [step for step in self._steps if step[0] > now]
        return due

    @property
    def next_at(self) -> float | None:
        """The time of the next step; None if there is none."""
        return self._steps[0][0] if self._steps else None
