"""Job types of which nothing could be claimed a moment ago: they rest, and hold up no
other."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from typing import Final

logger = logging.getLogger(__name__)

FIRST_REST: Final = 1.0  # seconds; doubled with each further failure
LONGEST_REST: Final = 8.0


class RestingTypes:
    """Tried again, more and more seldom, until a claim of one succeeds."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # time.monotonic()
        self._idle_backoff: dict[str, float] = {}  # the last one, in seconds

    def __contains__(self, job_type: object) -> bool:
        until = self._until.get(job_type) if self._until else None  # type: ignore[call-overload]
        return until is not None and until > time.monotonic()

    def add(self, job_type: str, why: str) -> None:
        """Nothing could be claimed of it, perhaps again."""
        before = self._idle_backoff.get(job_type)
        if before is None:
            logger.warning(
                "No jobs of %s can be claimed for now, will retry: %s", job_type, why
            )
        rest = FIRST_REST if before is None else min(2 * before, LONGEST_REST)
        self._idle_backoff[job_type] = rest
        self._until[job_type] = time.monotonic() + rest

    def discard(self, job_types: Iterable[str]) -> None:
        """Claims of these succeeded."""
        if self._idle_backoff:
            for job_type in job_types:
                if self._idle_backoff.pop(job_type, None) is not None:
                    del self._until[job_type]
                    logger.info("Jobs of %s can be claimed again", job_type)

    def end_rests(self) -> None:
        """Each may be tried now: perhaps what stood in the way is gone."""
        self._until = dict.fromkeys(self._until, 0.0)

    @property
    def seconds(self) -> float:
        """Until the first may be tried again; infinite if none rests."""
        now = time.monotonic()
        return min((u - now for u in self._until.values() if u > now), default=math.inf)
