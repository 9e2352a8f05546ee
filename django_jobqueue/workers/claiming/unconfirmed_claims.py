"""When to check for jobs whose claim was never confirmed."""

from __future__ import annotations

import math
import time
from typing import Final

RECHECK_FIRST: Final = 0.5  # seconds after an answer was lost; then twice that
RECHECK_LONGEST: Final = 300.0


class UnconfirmedClaims:
    """When to check for jobs that are claimed in this worker's name, but whose claim
    was never confirmed.

    Their claim may commit long after its answer was lost: it waits for a lock, or for a
    standby. So the first check is followed by others, at growing intervals, without
    limit.
    """

    def __init__(self) -> None:
        self._next_at = math.inf  # time.monotonic()
        self._wait = 0.0

    def arise(self) -> None:
        """An answer was lost."""
        self._wait, self._next_at = RECHECK_FIRST, 0.0

    def persists(self) -> None:
        """One of these jobs is locked by somebody: check again soon."""
        self._wait = RECHECK_FIRST
        self.postpone()

    def postpone(self) -> None:
        """Check again later."""
        self._next_at = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, RECHECK_LONGEST)

    @property
    def seconds_until_due(self) -> float:
        """Seconds until the next check; infinite if every claim was confirmed."""
        return max(0.0, self._next_at - time.monotonic())
