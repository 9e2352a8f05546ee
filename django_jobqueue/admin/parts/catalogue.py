"""The names that filters and forms offer, from small tables, read once a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from django_jobqueue.admin.parts.policies import effective_max_attempts
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models import JobType, Queue
from django_jobqueue.stats.pauses import is_paused as is_paused
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import lanes

_TYPES = "_jobqueue_job_types"
_QUEUES = "_jobqueue_queues"


def job_types(request: HttpRequest) -> dict[str, JobType]:
    """Every job type by its name."""
    rows = _once(request, _TYPES, lambda: list(JobType.objects.all()))
    return {row.name: row for row in rows}


def types_named(text: str, names: Iterable[str]) -> list[str]:
    """The job type of this name, or those whose last part it is."""
    known, wanted = sorted(names), text.lower()
    if text in known:
        return [text]
    return [name for name in known if name.lower().endswith(f".{wanted}")]


def types_like(text: str, names: Iterable[str]) -> list[str]:
    """The same, or else those that have it in their names."""
    known = sorted(names)
    named = types_named(text, known)
    return named or [name for name in known if text.lower() in name.lower()]


def queues(request: HttpRequest) -> dict[str, Queue]:
    """The queues that have a row, by their names."""
    rows = _once(request, _QUEUES, lambda: list(Queue.objects.all()))
    return {row.name: row for row in rows}


def queue_names(request: HttpRequest) -> list[str]:
    """The queues that are known without a look at the jobs."""
    declared = {row.queue for row in job_types(request).values()}
    return sorted({*declared, *queues(request)})


def queue_names_in_use(request: HttpRequest) -> list[str]:
    """The same, and those that queued jobs wait in: a loose scan of an index."""
    return sorted({*lanes.queues(DjangoDatabase()), *queue_names(request)})


def max_attempts(job: Any, job_type: JobType | None) -> int | None:
    """The maximum number of attempts of this job; None: unlimited."""
    own: int | None = job.max_attempts
    return own if job_type is None else effective_max_attempts(job_type, own)


def at_most_once(request: HttpRequest, jobs: Iterable[Any]) -> set[UUID]:
    """The ids of those whose type promises that its handler starts once only."""
    types = job_types(request)
    return {
        job.pk
        for job in jobs
        if job.job_type_id in types
        and types[job.job_type_id].delivery == Delivery.AT_MOST_ONCE
    }


def _once(request: HttpRequest, name: str, read: Any) -> Any:
    if not hasattr(request, name):
        setattr(request, name, read())
    return getattr(request, name)
