"""The page of a worker: running jobs, finished jobs, requests. Rows of endpoints and of
moves, which are no workers, have less."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.main import SEARCH_VAR
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.jobs.stack_dump import StackDump, moment_in, stack_dump_of
from django_jobqueue.admin.lists.change_list import WINDOW
from django_jobqueue.admin.parts import catalogue, display, policies
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.admin.workers.worker_summary import RowPage, row_page, running_jobs
from django_jobqueue.domain.states import ALIVE, WITHOUT_SLOTS, WorkerState
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, Worker
from django_jobqueue.search.tokens import quoted
from django_jobqueue.text import numbers, timezones

MOST_JOBS: Final = 100
MOST_FINISHED: Final = 20
SLACK: Final = timedelta(minutes=1)  # of what a worker wrote after it was given up
MOST_TYPES: Final = 200  # of its handlers


class Slot(NamedTuple):
    """The job that one slot runs now."""

    job: Any
    job_type: Any
    attempt: str
    since: Any
    elapsed: str
    timeout: str
    value: str = ""  # of the bar: seconds so far, of so many
    most: str = ""


class Finished(NamedTuple):
    """The last jobs of a worker, as far as they were looked for."""

    jobs: Sequence[dict[str, Any]]
    note: str = ""  # how far the archive was looked through, unless that was enough


class ProcessPart(NamedTuple):
    """The sections about a process: an endpoint has none, and a move's obeys nobody."""

    fate: Sequence[str]
    stack_dump: StackDump
    steps: Sequence[tuple[Any, Any]]
    history: Sequence[LogEntry]


class JobTypes(NamedTuple):
    """The job types that a worker has handlers for, or an endpoint is sent."""

    title: str
    text: str
    names: Sequence[Any]
    is_cut: bool


class WorkerPage(NamedTuple):
    """Everything on the page."""

    title: str  # instead of Django's; empty for a worker
    slots_title: str
    slots: Sequence[Slot]
    is_move: bool  # whose jobs are held, and do not run
    all_jobs: str  # the address of the list of its jobs, if more run than are shown
    process: ProcessPart | None
    finished: Finished | None
    job_types: JobTypes | None


def page_of(request: HttpRequest, worker: Worker) -> WorkerPage:
    """Read it, in a fixed number of queries."""
    is_process, other = worker.state not in WITHOUT_SLOTS, row_page(worker)
    is_move = other is not None and other.is_move
    sees_archive = not is_move and may_view(request, ArchivedJob)
    slots, has_more = _slots(request, worker)
    return WorkerPage(
        title=str(other.title) if other else "",
        slots_title=str(other.slots_title) if other else _("Running now"),
        slots=slots,
        is_move=is_move,
        all_jobs=_list_of_jobs(request, worker) if has_more else "",
        process=_process_part(request, worker) if is_process else None,
        finished=_finished(request, worker) if sees_archive else None,
        job_types=_job_types(request, worker, other),
    )


def _process_part(request: HttpRequest, worker: Worker) -> ProcessPart:
    return ProcessPart(
        fate=fate_of(worker),
        stack_dump=stack_dump_of(request, worker),
        steps=_steps(worker),
        history=entries(Worker, worker.pk),
    )


def fate_of(worker: Worker) -> list[str]:
    """The fate of the jobs that a worker held when it died."""
    counts = worker.rescued if isinstance(worker.rescued, dict) else {}
    queued, failed = _count(counts, "queued"), _count(counts, "failed")
    cancelled = _count(counts, "cancelled")
    texts = [
        (queued, ngettext("%(n)s job queued again", "%(n)s jobs queued again", queued)),
        (failed, ngettext("%(n)s job failed", "%(n)s jobs failed", failed)),
        (cancelled, ngettext("%(n)s job cancelled", "%(n)s jobs cancelled", cancelled)),
    ]
    return [text % {"n": numbers.number(count)} for count, text in texts if count]


def is_done(worker: Worker) -> bool:
    """True if the worker obeyed the request."""
    match worker.desired:
        case "drain":
            return worker.state == WorkerState.DRAINING
        case "resume":
            return worker.state == WorkerState.RUNNING
    return not worker.desired or worker.state not in ALIVE


def _job_types(
    request: HttpRequest, worker: Worker, other: RowPage | None
) -> JobTypes | None:
    """The first of the job types that it has handlers for, or that it has to do
    with."""
    if other is None:
        names = list(map(str, worker.job_types))
        title, text = _("Handlers"), _handlers_text(len(names))
    elif other.job_types is None:
        return None
    else:
        title, (names, text) = _("Job types"), other.job_types(worker)
    shown = sorted(names)[:MOST_TYPES]
    types = catalogue.job_types(request, shown)
    links = [type_link(request, name, name in types) for name in shown]
    return JobTypes(title, text, links, is_cut=len(names) > len(shown))


def _handlers_text(count: int) -> str:
    text = ngettext(
        "It has a handler for %(number)s job type.",
        "It has handlers for %(number)s job types.",
        count,
    )
    return text % {"number": numbers.number(count)}


def _count(counts: dict[str, Any], name: str) -> int:
    count = counts.get(name, 0)
    return count if isinstance(count, int) else 0


def _slots(request: HttpRequest, worker: Worker) -> tuple[list[Slot], bool]:
    """The running jobs, by the jobs' own rows, longest running first; and whether there
    are more."""
    running = (
        running_jobs(worker)
        .only("id", "job_type", "started_at", "attempts", "timeout")
        .order_by("started_at", "id")[: MOST_JOBS + 1]
    )
    jobs = list(running)
    shown = jobs[:MOST_JOBS]
    types = catalogue.job_types(request, {job.job_type_id for job in shown})
    slots = [_slot(request, job, types.get(job.job_type_id)) for job in shown]
    return slots, len(jobs) > len(shown)


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


def _list_of_jobs(request: HttpRequest, worker: Worker) -> str:
    """The address of the list of its running jobs, for who may see it."""
    if not may_view(request, QueuedJob):
        return ""
    query = urlencode({SEARCH_VAR: f"state:running worker:{quoted(worker.name)}"})
    return f"{reverse('admin:jobqueue_queuedjob_changelist')}?{query}"


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
        "" if enough else _window_note(worker),
    )


def _window_note(worker: Worker) -> str:
    count = {"count": numbers.number(WINDOW)}
    if worker.state == WorkerState.ENDPOINT:
        return _("Among the %(count)s newest jobs of the archive.") % count
    text = _(
        "Among the %(count)s newest jobs of the archive from the time of this worker."
    )
    return text % count


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
