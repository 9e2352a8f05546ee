"""Publishes the counters of a process in shared memory, for metrics."""

from __future__ import annotations

import logging
import math
import os
import time
from typing import Final

from django_jobqueue.domain.series import Series
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.store.outage_log import call_errors

logger = logging.getLogger("django_jobqueue.metrics")

EVERY: Final = 1.0  # seconds


class ProcessCounters:
    """Those that every process has, and a place to publish all of them.

    To be made in the process itself: it does not count what its parent counted.
    """

    def __init__(self, value: SharedValue) -> None:
        self._value = value
        self._published: tuple[int, Series, Series] | None = None
        self._next_at = -math.inf  # time.monotonic()
        self._errors_before = self._errors = call_errors.count
        self._dropped = 0
        self._is_too_large = False

    def is_due(self) -> bool:
        """True if a second has passed since this was asked and true."""
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + EVERY
        return True

    def publish(self, counters: Series, gauges: Series) -> None:
        """Let others see these, if something has changed."""
        content = (os.getpid(), {**counters, **self._of_process()}, gauges)
        if content == self._published:
            return
        self._published = content
        if not (self._value.write(content) or self._is_too_large):
            self._is_too_large = True
            logger.error(
                "There is no room for new metrics of this process; they stay as they "
                "are"
            )

    def _of_process(self) -> Series:
        # Threads that count at the same time may count one too few, so it could fall.
        self._errors = max(self._errors, call_errors.count)
        self._dropped = max(self._dropped, announcer.dropped)
        return {
            "jobqueue_worker_database_errors_total": {
                (): self._errors - self._errors_before
            },
            "jobqueue_worker_dropped_signals_total": {(): self._dropped},
        }
