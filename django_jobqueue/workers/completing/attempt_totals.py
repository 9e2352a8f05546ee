"""Counts of a process since its start, for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django_jobqueue.domain.series import Labels, Series, Value, summed
from django_jobqueue.metrics.label_sets import OTHER, queue_label
from django_jobqueue.store.rollup import Count

ATTEMPTS: Final = "jobqueue_worker_attempts_total"
DURATIONS: Final = "jobqueue_worker_attempt_duration_seconds"
WAITS: Final = "jobqueue_worker_attempt_wait_seconds"


class AttemptTotals:
    """Sums of counts: of attempts by queue, job type and outcome, of times by job
    type. Nothing is counted a second time: it takes counts that go to the roll-ups.

    ``most``: job types in queues that it tells apart; the others are added up.
    ``queues``: labels of queues by patterns of their names.
    """

    def __init__(self, most: int, queues: Mapping[str, str]) -> None:
        self._most = most
        self._queues = queues
        self._known: set[tuple[str, str]] = set()  # queues and job types
        self._total: Series = {}

    def add(self, counts: Iterable[Count]) -> None:
        """These went to the roll-ups."""
        self._total = self.series(counts)

    def series(self, counts: Iterable[Count]) -> Series:
        """The totals with these counts, too."""
        return summed([self._total, *map(self._series_of, counts)])

    def labels_of(self, queue: str, job_type: str) -> tuple[str, str]:
        """The labels of a queue and a job type: there are no more than ``most``."""
        labels = queue_label(queue, self._queues), job_type
        if labels not in self._known:
            if len(self._known) >= self._most:
                return OTHER, OTHER
            self._known.add(labels)
        return labels

    def _series_of(self, count: Count) -> Series:
        queue, job_type = self.labels_of(count.queue, count.job_type)
        attempts: dict[Labels, Value] = {
            (queue, job_type, outcome): number
            for outcome, number in count.outcomes.items()
        }
        if count.succeeded:
            attempts[queue, job_type, "succeeded"] = count.succeeded
        return {
            ATTEMPTS: attempts,
            DURATIONS: {(job_type,): (count.run_histogram, count.run_ms / 1_000)},
            WAITS: {(job_type,): (count.wait_histogram, count.wait_ms / 1_000)},
        }
