"""When lanes whose jobs wait for a rate, or for the retry of another one, may be asked
again."""

from __future__ import annotations

import math
import random
import time
from typing import Final

from django_jobqueue.store.rows import Lane

LEAST_WAIT: Final = 0.02  # seconds after a claim that got nothing: 50 claims a second
MOST_STAGGER: Final = 0.005  # seconds; all that wait for one start else ask at once


class NextStarts:
    """The next permitted starts: of job types, and of lanes whose keys have a rate."""

    def __init__(self) -> None:
        self.at: dict[str | Lane, float] = {}  # time.monotonic()
        self._retries: set[Lane] = set()  # that no rate holds back

    def wait(self, rated: str | Lane, seconds: float, *, got_none: bool) -> None:
        """Its next start is permitted so many seconds from now. A claim that got none
        is not repeated at once: another worker may be first again."""
        if got_none:
            seconds = max(seconds, LEAST_WAIT) + random.uniform(0, MOST_STAGGER)
        self.at[rated] = time.monotonic() + seconds
        self._retries.discard(rated)

    def wait_for_retry(self, lane: Lane, seconds: float) -> None:
        """A job is due so many seconds from now that goes before others of its key."""
        at = time.monotonic() + max(seconds, LEAST_WAIT)
        at += random.uniform(0, MOST_STAGGER)
        if lane not in self.at:
            self._retries.add(lane)
        self.at[lane] = min(at, self.at.get(lane, at))

    def ask(self, rated: str | Lane) -> None:
        """It may be asked now, if it waits."""
        if rated in self.at:
            self.at[rated] = 0.0

    def ask_all(self) -> None:
        """All may be asked now: perhaps their rates have changed."""
        self.at = dict.fromkeys(self.at, 0.0)

    def is_waiting(self, lane: Lane) -> bool:
        """True if no job of this lane may start yet."""
        if not self.at:
            return False
        until = max(self.at.get(lane.job_type, 0.0), self.at.get(lane, 0.0))
        return until > time.monotonic()

    def is_waiting_for_rate(self, lane: Lane) -> bool:
        """True if it is a rate that lets no job of this lane start yet."""
        return self.is_waiting(lane) and lane not in self._retries

    def pop_due(self) -> set[str | Lane]:
        """Those that may be asked now; they wait no longer."""
        now = time.monotonic()
        due = {rated for rated, at in list(self.at.items()) if at <= now}
        for rated in due:
            self.at.pop(rated, None)
            self._retries.discard(rated)
        return due

    @property
    def seconds(self) -> float:
        """Until the first may be asked; infinite if none waits."""
        first = min(list(self.at.values()), default=math.inf)
        return max(0.0, first - time.monotonic())
