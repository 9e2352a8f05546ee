"""Estimates run times by job type, which decide how many jobs are claimed ahead of free
slots."""

from __future__ import annotations

from typing import Final

from django_jobqueue.conf import conf

MOST_PREFETCHED: Final = 3_000  # jobs
LARGEST_PREFETCHED: Final = (
    32_000_000  # characters of data, if all have as many as the largest
)
OVERHEAD: Final = 0.00002  # seconds of Python around a job, one at a time
SHORT: Final = 0.01  # seconds; what takes longer is not claimed ahead
SAMPLES: Final = 10  # before a type is believed to be short
WEIGHT: Final = 0.05  # of the newest run
FADE: Final = 0.9  # of what was the largest, at each claim


class RuntimeEstimate:
    """Moving averages of run times, by job type; how much data jobs have here."""

    def __init__(self) -> None:
        self._largest = 0.0  # characters, of late
        self._mean: dict[str, float] = {}
        self._seen: dict[str, int] = {}

    def ran(self, job_type: str, seconds: float) -> None:
        """Take note of one run."""
        seen = self._seen.get(job_type, 0)
        if seen < SAMPLES:
            self._seen[job_type] = seen + 1
        mean = self._mean.get(job_type, seconds)
        self._mean[job_type] = mean + (seconds - mean) * WEIGHT

    def took(self, largest: int) -> None:
        """Take note of the most data, in characters, that a job of one claim has."""
        self._largest = max(self._largest * FADE, largest, 1)

    def is_short(self, job_type: str) -> bool:
        """True if jobs of this type are known to be short."""
        return self._seen.get(job_type, 0) >= SAMPLES and self._mean[job_type] <= SHORT

    def mean(self, job_type: str) -> float:
        """The moving average, in seconds; 0 if nothing is known."""
        return self._mean.get(job_type, 0.0)

    def prefetch(self, job_type: str, slots: int) -> int:
        """The number of jobs of this type that this many slots run in the time of
        PREFETCH.

        A claim takes as long as hundreds of the shortest ones.
        """
        if not self.is_short(job_type):
            return 0
        each = max(self._mean[job_type] / slots, OVERHEAD)
        room = LARGEST_PREFETCHED / self._largest if self._largest else MOST_PREFETCHED
        return int(min(MOST_PREFETCHED, conf.prefetch / each, room))
