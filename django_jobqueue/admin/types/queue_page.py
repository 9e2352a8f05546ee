"""The page of a queue: its job types, its workers, its pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import catalogue, depths, display
from django_jobqueue.admin.parts.entries import entries
from django_jobqueue.admin.parts.lines import finished_cell, last_day
from django_jobqueue.admin.workers.fleet import fleet, worker_links, workers_cell
from django_jobqueue.models import ArchivedJob, JobType, Queue, QueuedJob
from django_jobqueue.stats.lines import Line
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.text import numbers


@dataclass(frozen=True, slots=True)
class QueuePage:
    """All of it."""

    job_types: Sequence[dict[str, Any]]
    idle: Sequence[Any]  # job types that declare this queue, and no more
    workers: Sequence[Any]
    history: Sequence[LogEntry]
    links: Sequence[tuple[str, Any]]


def page_of(request: HttpRequest, queue: Queue) -> QueuePage:
    """Read it, in a fixed number of queries."""
    found = {d.job_type: d for d in depths.depths(request) if d.queue == queue.name}
    past = last_day(
        lambda recent: recent.job_type if recent.queue == queue.name else ""
    )
    active = sorted({*found, *past} - {""})
    types = catalogue.job_types(request).values()
    idle = sorted({t.name for t in types if t.queue == queue.name} - {*active})
    return QueuePage(
        job_types=[
            _row(
                request,
                name,
                found.get(name) or Depth(queue.name, name),
                past.get(name) or Line(name),
            )
            for name in active
        ],
        idle=[_name(request, name) for name in idle],
        workers=worker_links(request, fleet(request).serving(queue.name)),
        history=entries(Queue, queue.pk),
        links=_links(request, queue.name),
    )


def served_cell(request: HttpRequest, queue: str) -> Any:
    """How many living workers serve it."""
    return workers_cell(fleet(request).serving(queue), _("no living worker serves it"))


def _row(request: HttpRequest, name: str, depth: Depth, line: Line) -> dict[str, Any]:
    return {
        "name": _name(request, name),
        "ready": depths.count_text(depth.ready),
        "oldest": depths.age_text(depth.oldest),
        "later": depths.count_text(depth.later),
        "running": numbers.number(depth.running),
        "finished": finished_cell(line),
    }


def _name(request: HttpRequest, name: str) -> Any:
    known = name in catalogue.job_types(request) and may_view(request, JobType)
    shown = display.visible(name)
    return display.link("jobtype", name, shown) if known else shown


def _links(request: HttpRequest, queue: str) -> list[tuple[str, Any]]:
    offered = ((QueuedJob, _("Queued jobs")), (ArchivedJob, _("Archived jobs")))
    return [
        (
            reverse(f"admin:jobqueue_{model._meta.model_name}_changelist")
            + f"?{urlencode({'queue': queue})}",
            label,
        )
        for model, label in offered
        if may_view(request, model)
    ]
