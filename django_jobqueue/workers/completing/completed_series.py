"""The completer's counts for metrics, as one snapshot after another."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.domain.series import Series
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.workers.completing.attempt_totals import AttemptTotals
from django_jobqueue.workers.completing.counters import Counters

EVERY: Final = 1.0  # seconds between two snapshots
REFUSED: Final = "jobqueue_worker_refused_writes_total"
DELAY: Final = "jobqueue_worker_outcome_delay_seconds"


class CompletedSeries:
    """The completer counts; any thread may read the last snapshot, ``latest``."""

    def __init__(self, counters: Counters) -> None:
        counters.totals = AttemptTotals(conf.metrics_series, conf.metrics_queues)
        self.latest: Series = {}
        self._counters = counters
        self._refused = 0
        self._delays = [0] * BUCKETS
        self._delay = 0.0  # seconds, of all outcomes
        self._has_changed = False
        self._due_at = -math.inf  # time.monotonic()

    def written(self, batch: Sequence[Finished], lost: int) -> None:
        """A batch was committed; the claims of so many of it were ``lost``. All count
        with the delay of the first, since one look at the clock is enough for all."""
        delay = max(0.0, time.monotonic() - batch[0].ended)
        self._delays[bucket_of(delay)] += len(batch)
        self._delay += delay * len(batch)
        self._refused += lost
        self._has_changed = True

    def refresh(self, *, at_once: bool = False) -> float:
        """Take a snapshot if it is time to; returns the seconds until the next."""
        if not self._has_changed:
            return math.inf
        now = time.monotonic()
        if now < self._due_at and not at_once:
            return self._due_at - now
        self._has_changed, self._due_at = False, now + EVERY
        self.latest = {
            **self._counters.series(),
            REFUSED: {(): self._refused},
            DELAY: {(): ([*self._delays], self._delay)},
        }
        return math.inf
