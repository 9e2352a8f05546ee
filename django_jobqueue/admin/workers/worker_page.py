"""The page of a worker: running jobs, finished jobs, requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.jobs.stack_dump import StackDump, moment_in, stack_dump_of
from django_jobqueue.admin.lists.change_list import WINDOW
from django_jobqueue.admin.parts import catalogue, display, policies
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.domain.states import ALIVE, QueuedStatus, WorkerState
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, Worker
from django_jobqueue.text import numbers, timezones

MOST_JOBS: Final = 100
MOST_FINISHED: Final = 20
SLACK: Final = timedelta(minutes=1)  # of what a worker wrote after it was given up
MOST_TYPES: Final = 200  # of its handlers


@dataclass(frozen=True, slots=True)
class Slot:
    """The job that one slot runs now."""

    job: Any
    job_type: Any
    attempt: str
    since: Any
    elapsed: str
    timeout: str
    value: str = ""  # of the bar: seconds so far, of so many
    most: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last jobs of a worker, as far as they were looked for."""

    jobs: Sequence[dict[str, Any]]
    examined: str = ""  # jobs of the archive; empty if that was enough


@dataclass(frozen=True, slots=True)
class WorkerPage:
    """Everything on the page."""

    slots: Sequence[Slot]
    fate: Sequence[str]
    stack_dump: StackDump
    finished: Finished | None
    steps: Sequence[tuple[Any, Any]]
    history: Sequence[LogEntry]
    job_types: Sequence[Any]
    type_count: int


def page_of(request: HttpRequest, worker: Worker) -> WorkerPage:
    """Read it, in a fixed number of queries."""
    sees_archive = may_view(request, ArchivedJob)
    return WorkerPage(
        slots=_slots(request, worker),
        fate=fate_of(worker),
        stack_dump=stack_dump_of(request, worker),
        finished=_finished(request, worker) if sees_archive else None,
        steps=_steps(worker),
        history=entries(Worker, worker.pk),
        job_types=_job_types(request, worker),
        type_count=len(worker.job_types),
    )


def fate_of(worker: Worker) -> list[str]:
    """The fate of the jobs that a worker held when it died."""
    counts = worker.rescued if isinstance(worker.rescued, dict) else {}
    queued, failed = _count(counts, "queued"), _count(counts, "failed")
    cancelled = _count(counts, "cancelled")
    texts = [
        (queued, ngettext("%(n)s job queued again", "%(n)s jobs queued again", queued)),
        (failed, ngettext("%(n)s job failed", "%(n)s jobs failed", failed)),
        (
            cancelled,
            ngettext("%(n)s job cancelled", "%(n)s jobs cancelled", cancelled),
        ),
    ]
    return [text % {"n": numbers.number(count)} for count, text in texts if count]


def is_done(worker: Worker) -> bool:
    """Whether the worker obeyed the request."""
    match worker.desired:
        case "drain":
            return worker.state == WorkerState.DRAINING
        case "resume":
            return worker.state == WorkerState.RUNNING
    return not worker.desired or worker.state not in ALIVE


def _job_types(request: HttpRequest, worker: Worker) -> list[Any]:
    """The first of the job types that it has handlers for."""
    names = sorted(map(str, worker.job_types))[:MOST_TYPES]
    types = catalogue.job_types(request, names)
    return [type_link(request, name, name in types) for name in names]


def _count(counts: dict[str, Any], name: str) -> int:
    count = counts.get(name, 0)
    return count if isinstance(count, int) else 0


def _slots(request: HttpRequest, worker: Worker) -> list[Slot]:
    """The running jobs, by the jobs' own rows, longest running first."""
    running = (
        QueuedJob.objects.filter(worker_id=worker.pk, status=QueuedStatus.RUNNING)
        .only("id", "job_type", "started_at", "attempts", "timeout")
        .order_by("started_at", "id")[:MOST_JOBS]
    )
    jobs = list(running)
    types = catalogue.job_types(request, {job.job_type_id for job in jobs})
    return [_slot(request, job, types.get(job.job_type_id)) for job in jobs]


def _slot(request: HttpRequest, job: QueuedJob, job_type: JobType | None) -> Slot:
    timeout = (
        policies.effective_timeout(job_type, job.timeout) if job_type else job.timeout
    )
    started = job.started_at or timezones.now()
    elapsed = max(0.0, (timezones.now() - started).total_seconds())
    bar = {}
    if timeout is not None:
        most = round(timeout.total_seconds() * 1_000)
        bar = {"value": str(min(most, round(elapsed * 1_000))), "most": str(most)}
    return Slot(
        job=_job_link(request, QueuedJob, job.pk),
        job_type=type_link(request, job.job_type_id, job_type is not None),
        attempt=numbers.number(job.attempts),
        since=display.moment(job.started_at),
        elapsed=numbers.span(elapsed),
        timeout=numbers.length(timeout),
        **bar,
    )


def type_link(request: HttpRequest, name: str, known: bool) -> Any:
    """The name of a job type, as a link for who may follow it."""
    shown = display.breakable(name)
    sees = known and may_view(request, JobType)
    return display.link("jobtype", name, shown) if sees else shown


def _job_link(request: HttpRequest, model: type[Any], id: Any) -> Any:
    shown = display.short_id(id)
    if not may_view(request, model):
        return shown
    return display.link(str(model._meta.model_name), id, shown)


def _finished(request: HttpRequest, worker: Worker) -> Finished:
    """There is no index by worker: a window of the archive is looked through."""
    until = timezones.now()
    if worker.stopped_at is not None:
        until = min(until, worker.stopped_at + SLACK)
    while_it_lived = ArchivedJob.objects.filter(
        finished_at__gte=worker.started_at, finished_at__lte=until
    ).order_by("-finished_at", "-id")
    far = while_it_lived.values_list("finished_at", flat=True)[WINDOW : WINDOW + 1]
    boundary: datetime | None = next(iter(far), None)
    if boundary is not None:
        while_it_lived = while_it_lived.filter(finished_at__gt=boundary)
    rows = list(
        while_it_lived.filter(worker=worker.name).only(
            "id", "job_type", "status", "finished_at", "run_ms"
        )[:MOST_FINISHED]
    )
    types = catalogue.job_types(request, {job.job_type_id for job in rows})
    enough = boundary is None or len(rows) == MOST_FINISHED
    return Finished(
        [
            {
                "job": _job_link(request, ArchivedJob, job.pk),
                "job_type": type_link(
                    request, job.job_type_id, job.job_type_id in types
                ),
                "state": display.pill(job.status, job.get_status_display()),
                "finished": display.moment(job.finished_at),
                "ran": numbers.duration(job.run_ms),
            }
            for job in rows
        ],
        "" if enough else numbers.number(WINDOW),
    )


def _steps(worker: Worker) -> list[tuple[Any, Any]]:
    """The last request: when it was made, when its host saw it, and how far it is."""
    if not worker.desired:
        return []
    times = worker.request if isinstance(worker.request, dict) else {}
    heard = moment_in(times, "heard_at")
    return [
        (_("Asked to"), display.visible(worker.desired)),
        (_("Asked"), display.full_moment(moment_in(times, "asked_at"))),
        (_("Heard"), display.full_moment(heard) if heard else _("not yet")),
        (_("Done"), _progress(worker)),
    ]


def _progress(worker: Worker) -> Any:
    if worker.state not in ALIVE:
        return display.full_moment(worker.stopped_at)
    waits = worker.desired != "resume" and worker.running
    if not is_done(worker) and not waits:
        return _("not yet")
    if waits:
        text = ngettext(
            "not yet: %(n)s job runs", "not yet: %(n)s jobs run", worker.running
        )
        return text % {"n": numbers.number(worker.running)}
    return _("yes")
