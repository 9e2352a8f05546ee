"""Counts what became of the attempts of dead workers, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.series import Labels, Series, summed
from django_jobqueue.store.queue.rescue import Rescued
from django_jobqueue.store.rollup import Count
from django_jobqueue.workers.completing.attempt_totals import ATTEMPTS, AttemptTotals

RESCUED: Final = "jobqueue_worker_rescued_jobs_total"


class RescueCounts:
    """The rescuer counts; any thread may read ``series``."""

    def __init__(self) -> None:
        self.series: Series = {}
        self._timed_out = AttemptTotals(conf.metrics_series, conf.metrics_queues)
        self._others: Series = {}

    def add(self, taken: Sequence[Rescued], timed_out: Iterable[Count] = ()) -> None:
        """These jobs were taken from a dead worker; these attempts ended for it."""
        rescued = Counter[Labels]((job.status,) for job in taken)
        ended = Counter[Labels](
            (
                *self._timed_out.labels_of(job.queue, job.job_type),
                "crashed" if job.crashed else "released",
            )
            for job in taken
        )
        new: Series = {RESCUED: {**rescued}, ATTEMPTS: {**ended}}
        self._others = summed([self._others, new])
        self._timed_out.add(timed_out)
        self.series = summed([self._others, self._timed_out.series(())])
