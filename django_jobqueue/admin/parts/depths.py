"""Numbers of waiting and running jobs, by job type or queue; read once a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from django_jobqueue.admin.parts import display
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.stats import CAP, Depth
from django_jobqueue.text import numbers


def depths(request: HttpRequest) -> list[Depth]:
    """The waiting and running jobs of each job type in each queue."""
    known: list[Depth] | None = getattr(request, "_jobqueue_depths", None)
    if known is None:
        known = stats.depths(DjangoDatabase())
        request._jobqueue_depths = known  # type: ignore[attr-defined]
    return known


def of_job_type(name: str) -> Depth:
    """The sum of one job type over all queues, read now: a fraction of the work."""
    rows = stats.depths(DjangoDatabase(), name)
    return _summed(rows, lambda depth: depth.job_type).get(name) or Depth("", name)


def by_job_type(request: HttpRequest) -> dict[str, Depth]:
    """The sum of each job type over all queues."""
    return _summed(depths(request), lambda depth: depth.job_type)


def by_queue(request: HttpRequest) -> dict[str, Depth]:
    """The sum of each queue over all job types."""
    return _summed(depths(request), lambda depth: depth.queue)


def count_text(count: int) -> str:
    """A count as it is shown: none is counted above the cap."""
    return numbers.at_least(count, CAP)


def age_text(seconds: float | None) -> str:
    """How long the oldest ready job has waited."""
    return display.NOTHING if seconds is None else numbers.span(seconds)


def ready_cell(depth: Depth) -> Any:
    """How many are ready, and how long the oldest has waited."""
    if not depth.ready:
        return "0"
    return display.lines([count_text(depth.ready), age_text(depth.oldest)])


def _summed(rows: list[Depth], key: Callable[[Depth], str]) -> dict[str, Depth]:
    sums: dict[str, Depth] = {}
    for depth in rows:
        one = sums.setdefault(key(depth), Depth("", ""))
        one.ready += depth.ready
        one.later += depth.later
        one.retrying += depth.retrying
        one.running += depth.running
        if depth.oldest is not None:
            one.oldest = max(one.oldest or 0.0, depth.oldest)
    return sums
