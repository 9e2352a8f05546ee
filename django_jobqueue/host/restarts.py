"""The restart policy: when to start a worker again after one that died, and when to
start one for a job that must run alone."""

from __future__ import annotations

import logging
from typing import Final

logger = logging.getLogger("django_jobqueue.supervisor")

SHORT_LIFE: Final = 10.0  # seconds; a process that dies younger is replaced ever later
SHORTEST_PAUSE: Final = 0.1  # seconds
LONGEST_PAUSE: Final = 5.0
LOGGED_EVERY: Final = 60.0  # seconds between reports of the same error
# After a worker for a job that must run alone that claimed nothing; seconds.
SHORTEST_QUARANTINE_PAUSE: Final = 0.5
LONGEST_QUARANTINE_PAUSE: Final = 30.0


class Restarts:
    """At once after the first death. Repeated deaths at a young age make the host wait
    longer and longer, so that it neither forks all day nor fills its log.

    All times are those of ``time.monotonic()``.
    """

    def __init__(self) -> None:
        self.in_row = 0  # deaths at a young age
        self.next_at = 0.0
        self._logged_at: float | None = None
        self._cause = ""

    @property
    def how_often(self) -> str:
        """The end of a sentence about a death."""
        return f", {self.in_row} times in a row" if self.in_row > 1 else ""

    def is_due(self, now: float) -> bool:
        """True if the next one may start."""
        return now >= self.next_at

    def died(self, *, lived: float, now: float) -> None:
        """One died at this age in seconds; zero if it could not be started."""
        if lived > SHORT_LIFE:
            self.reset()
            return
        self.in_row += 1
        if self.in_row > 1:
            pause = SHORTEST_PAUSE * 2 ** min(self.in_row, 10)
            self.next_at = now + min(LONGEST_PAUSE, pause)

    def could_not_start(self, what: str, error: Exception, now: float) -> None:
        """The system has no room for one more process or thread now; log it, but the
        same error only once a minute."""
        self.died(lived=0.0, now=now)
        if self.note_cause(str(error), now):
            logger.error("No %s can be started (%s); trying again", what, error)

    def reset(self) -> None:
        """One ended in good order."""
        self.in_row = 0
        self.next_at = 0.0

    def note_cause(self, cause: str, now: float) -> bool:
        """Note the cause of a death; returns whether to log it: the same one only once
        a minute."""
        logged_at, self._cause, before = self._logged_at, cause, self._cause
        is_old = logged_at is not None and now - logged_at < LOGGED_EVERY
        if self.in_row > 1 and cause == before and is_old:
            return False
        self._logged_at = now
        return True

    def is_verbose(self, now: float) -> bool:
        """True if a process that starts now should log a traceback if it fails."""
        logged_at = self._logged_at
        return self.in_row < 2 or logged_at is None or now - logged_at >= LOGGED_EVERY


class QuarantineRestarts:
    """One worker at a time, and only for a job that was seen after the last one ended.

    Another host may take the job meanwhile, or hold a lock on it. So each worker that
    claims nothing makes the next one wait longer, whatever the reason.
    """

    def __init__(self) -> None:
        self._ended_at = 0.0  # time.monotonic()
        self._next_at = 0.0
        self._pause = 0.0  # seconds

    def wants_worker(self, seen_at: float, now: float) -> bool:
        """True to start one for a job that was seen then. Both are
        time.monotonic()."""
        return seen_at > self._ended_at and now >= self._next_at

    def ended(self, now: float, *, has_claimed: bool) -> None:
        """The last one has ended."""
        pause = min(
            LONGEST_QUARANTINE_PAUSE, 2 * self._pause or SHORTEST_QUARANTINE_PAUSE
        )
        self._ended_at = now
        self._pause = 0.0 if has_claimed else pause
        self._next_at = now + self._pause
