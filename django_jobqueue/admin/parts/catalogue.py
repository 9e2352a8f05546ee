"""Job types and queues by their names, read once a request; of the job types, which may
be thousands, only those that a page names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Count, Value
from django.db.models.functions import Coalesce, NullIf
from django.http import HttpRequest

from django_jobqueue.admin.parts.policies import effective_max_attempts
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models import JobType, Queue
from django_jobqueue.search.selection import Selection
from django_jobqueue.stats.pauses import is_paused as is_paused
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import lanes

_TYPES = "_jobqueue_job_types"
_DECLARED = "_jobqueue_queues_of_job_types"
_SENSITIVE = "_jobqueue_sensitive_keys"
_QUEUES = "_jobqueue_queues"


def job_types(request: HttpRequest, names: Iterable[str]) -> dict[str, JobType]:
    """The job types of these names that exist, by name: one query, for new names."""
    known: dict[str, JobType | None] = _once(request, _TYPES, dict)
    wanted = set(names)
    missing = {name for name in wanted - known.keys() if "\x00" not in name}
    if missing:
        known.update(dict.fromkeys(missing))
        rows = JobType.objects.filter(name__in=missing)
        known.update({row.name: row for row in rows})
    return {name: row for name in wanted if (row := known.get(name)) is not None}


def job_type(request: HttpRequest, name: str) -> JobType | None:
    """The job type of this name."""
    return job_types(request, [name]).get(name)


def type_names(request: HttpRequest) -> list[str]:
    """The name of every job type that was ever declared, in order."""
    return sorted(_declared(request))


def _declared(request: HttpRequest) -> dict[str, str]:
    """The queue of each job type."""

    def read() -> dict[str, str]:
        return dict(JobType.objects.order_by().values_list("name", "queue"))

    queues: dict[str, str] = _once(request, _DECLARED, read)
    return queues


def types_of_queue(request: HttpRequest, queue: str) -> set[str]:
    """The names of the job types that declare this queue."""
    return {name for name, own in _declared(request).items() if own == queue}


def sensitive_keys(request: HttpRequest) -> list[list[Any]]:
    """The sensitive keys of all job types that have some."""

    def read() -> list[list[Any]]:
        rows = JobType.objects.exclude(sensitive=[]).order_by()
        return list(rows.values_list("sensitive", flat=True).distinct())

    keys: list[list[Any]] = _once(request, _SENSITIVE, read)
    return keys


def sensitive_of(request: HttpRequest, selection: Selection) -> list[str]:
    """The sensitive keys of the job types of a selection, or of all."""
    named = job_types(request, selection.values("type")).values()
    lists = [row.sensitive for row in named] or sensitive_keys(request)
    return [str(key) for keys in lists for key in keys]


def summary_templates() -> list[tuple[str, int]]:
    """The values of job types, and how many share each."""
    template = Coalesce(NullIf("summary_override", Value("")), "summary")
    rows = JobType.objects.exclude(summary=None, summary_override=None)
    counts = rows.order_by().values_list(template).annotate(Count("pk"))
    return [(text, types) for text, types in counts if text]


def queues(request: HttpRequest) -> dict[str, Queue]:
    """The queues that have a row, by their names."""
    rows = _once(request, _QUEUES, lambda: list(Queue.objects.all()))
    return {row.name: row for row in rows}


def queue_names(request: HttpRequest) -> list[str]:
    """The queues that are known without a look at the jobs."""
    return sorted({*_declared(request).values(), *queues(request)})


def queue_names_in_use(request: HttpRequest) -> list[str]:
    """The same, and those that queued jobs wait in: a loose scan of an index."""
    return sorted({*lanes.queues(DjangoDatabase()), *queue_names(request)})


def max_attempts(job: Any, job_type: JobType | None) -> int | None:
    """The maximum number of attempts of this job; None: unlimited."""
    own: int | None = job.max_attempts
    return own if job_type is None else effective_max_attempts(job_type, own)


def at_most_once(request: HttpRequest, jobs: Iterable[Any]) -> set[UUID]:
    """The ids of those whose type promises that its handler starts once only."""
    jobs = list(jobs)
    types = job_types(request, {job.job_type_id for job in jobs})
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
