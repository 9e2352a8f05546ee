"""Counts enqueued jobs, for METRICS_ENQUEUED: in the registry of ``prometheus_client``,
since each project has its own way to scrape the processes that enqueue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.metrics.catalogue import PRODUCER
from django_jobqueue.metrics.exposition import require_extra
from django_jobqueue.metrics.label_sets import OTHER, queue_label
from django_jobqueue.observers import Enqueue, Observer, observe

NAME: Final = "jobqueue_enqueued_jobs_total"


class EnqueuedJobs(Observer):
    """Counts the new jobs of each enqueue; neither duplicates nor errors."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter
        self._known: set[tuple[str, str]] = set()

    @contextmanager
    def around_enqueue(self, enqueue: Enqueue) -> Iterator[None]:
        """Count when it was done."""
        asked = () if enqueue.is_many else tuple(enqueue.ids)
        yield
        if count := _new_jobs(enqueue, asked):
            self._counter.labels(*self._labels(enqueue)).inc(count)

    def _labels(self, enqueue: Enqueue) -> tuple[str, str]:
        job_type = enqueue.job_type or OTHER
        queue = enqueue.queue or _declared_queue(job_type)
        labels = queue_label(queue, conf.metrics_queues), job_type
        if labels not in self._known:
            if len(self._known) >= conf.metrics_series:
                return OTHER, OTHER
            self._known.add(labels)
        return labels


def count_enqueues() -> None:
    """Count from now on. Raises MetricsExtraMissing."""
    require_extra()
    observe(_observer())


@cache
def _observer() -> EnqueuedJobs:
    """One for the process: a registry takes a name once."""
    from prometheus_client import Counter

    metric = PRODUCER[NAME]
    return EnqueuedJobs(Counter(NAME, metric.help, metric.label_names))


def _new_jobs(enqueue: Enqueue, asked: tuple[Any, ...]) -> int:
    if isinstance(enqueue.ids, EnqueuedIds):
        return len(enqueue.ids.new)
    if enqueue.is_replay:
        return len(enqueue.ids)
    return sum(id in asked for id in enqueue.ids)  # a duplicate has another one


def _declared_queue(job_type: str) -> str:
    declaration = registry.get(job_type)
    return OTHER if declaration is None else declaration.policy.queue
