"""When to have a worker for the jobs that run alone in their process."""

from __future__ import annotations

from typing import Final

SHORTEST: Final = 0.5  # seconds until the next one, after one that claimed nothing
LONGEST: Final = 30.0


class Quarantine:
    """One worker at a time, each only for a job that was seen after the last one ended.

    What was seen may be taken by another host meanwhile, or be locked. So a worker that
    claimed nothing is followed by the next one later and later, whatever the reason.
    """

    def __init__(self) -> None:
        self._ended_at = 0.0  # time.monotonic()
        self._next_at = 0.0
        self._rest = 0.0  # seconds

    def wants_worker(self, seen_at: float, now: float) -> bool:
        """Whether there is to be one for a job that was seen then. Both are
        time.monotonic()."""
        return seen_at > self._ended_at and now >= self._next_at

    def ended(self, now: float, *, has_claimed: bool) -> None:
        """The last one has ended."""
        self._ended_at = now
        self._rest = 0.0 if has_claimed else min(LONGEST, 2 * self._rest or SHORTEST)
        self._next_at = now + self._rest
