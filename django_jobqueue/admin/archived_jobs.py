"""The archive: what became of jobs, and replaying them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.contrib.admin import display as column
from django.contrib.admin import register
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import catalogue, display
from django_jobqueue.admin.base import may
from django_jobqueue.admin.filters import (
    FailureGroupFilter,
    JobTypeFilter,
    QueueFilter,
    StatusFilter,
)
from django_jobqueue.admin.job_page import (
    Attempt,
    JobPage,
    Reader,
    Step,
    by_original,
    replay_cell,
    replays_of,
)
from django_jobqueue.admin.jobs import JobAdmin, tries_of, type_link
from django_jobqueue.admin.ranges import TimeRangeFilter
from django_jobqueue.admin.replay import ReplayJobs
from django_jobqueue.admin.verbs import Verb
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.states import ArchivedStatus


@dataclass(slots=True)
class Around:
    """What a list or page knows beside the row of an archived job."""

    job_type: JobType | None
    replays: list[Any] = field(default_factory=list)  # cells, newest first


@register(ArchivedJob)
class ArchivedJobAdmin(JobAdmin):
    """Jobs that are over."""

    verbs: ClassVar[Sequence[Verb]] = (ReplayJobs(),)
    verb_columns = ("id", "job_type", "status", "expires_at")
    key_columns = ("finished_at", "id")
    large_columns = ("data", "result")
    list_columns = (
        "id",
        "job_type",
        "status",
        "attempts",
        "max_attempts",
        "crashes",
        "wait_ms",
        "run_ms",
        "finished_at",
        "error_class",
        "error_message",
    )
    list_display = (
        "job",
        "state",
        "finished",
        "tries",
        "ran",
        "waited",
        "replayed",
    )
    list_filter = (
        StatusFilter,
        JobTypeFilter,
        QueueFilter,
        ("finished_at", TimeRangeFilter),
        FailureGroupFilter,
    )
    elsewhere = QueuedJob
    elsewhere_note = _("This job is not over; it is among the queued jobs.")

    def has_replay_permission(self, request: HttpRequest) -> bool:
        """Whether the user may replay jobs."""
        return may(request, "replay_archivedjob")

    def dress(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Job types and replays: a query each."""
        types = catalogue.job_types(request)
        ids = [row.pk for row in rows]
        replays = by_original(replays_of(ids)) if ids else {}
        for row in rows:
            found = replays.get(row.pk, [])
            cells = [replay_cell(request, *rest) for original, *rest in found]
            row.around = Around(types.get(row.job_type_id), cells)
        return rows

    @column(description=_("status"))
    def state(self, job: Any) -> Any:
        """What became of it, and what it failed with."""
        error = display.error_cell(job.error_class, job.error_message)
        return display.lines([_status_pill(job), *error])

    @column(description=_("attempts"))
    def tries(self, job: Any) -> Any:
        """Attempts, of how many; and crashes."""
        return tries_of(job, catalogue.max_attempts(job, job.around.job_type))

    @column(description=_("waited"))
    def waited(self, job: Any) -> str:
        """From due to the start of the last attempt."""
        return display.short(display.duration(job.wait_ms))

    @column(description=_("ran"))
    def ran(self, job: Any) -> str:
        """The length of the last attempt."""
        return display.short(display.duration(job.run_ms))

    @column(description=_("finished"))
    def finished(self, job: Any) -> Any:
        """When it was over."""
        return display.moment(job.finished_at)

    @column(description=_("replayed"))
    def replayed(self, job: Any) -> Any:
        """What became of its latest replay, and how many there are."""
        cells = job.around.replays
        if not cells:
            return display.NOTHING
        more = len(cells) - 1
        if not more:
            return cells[0]
        return format_html('{} <span class="jq-quiet">+{}</span>', cells[0], more)

    def page(self, request: HttpRequest, job: Any) -> JobPage:
        """The page of a job that is over."""
        job_type = catalogue.job_types(request).get(job.job_type_id)
        read = Reader(request, job, job_type)
        failures, more = read.failures()
        return JobPage(
            state=_status_pill(job),
            summary=_summary(request, job, read, job_type),
            timeline=_timeline(job),
            attempts=[*_success(job), *failures],
            more_attempts=more,
            data=read.data(),
            result=read.result(),
            error=_unsaid(read.error(job), failures),
            buttons=self.buttons(request, job),
            history=read.history(),
        )


def _unsaid(error: tuple[str, str], attempts: list[Attempt]) -> tuple[str, str]:
    """Why the job ended, unless its last attempt says that already."""
    said = {(attempt.error_class, attempt.message) for attempt in attempts[:1]}
    return ("", "") if error in said else error


def _status_pill(job: Any) -> Any:
    known = job.status in ArchivedStatus.values
    kind = job.status if known else "unknown"
    return display.pill(kind, job.get_status_display())


def _summary(
    request: HttpRequest, job: Any, read: Reader, job_type: JobType | None
) -> list[tuple[Any, Any]]:
    limit = catalogue.max_attempts(job, job_type)
    return [
        (_("Id"), display.whole_id(job.pk)),
        (_("Job type"), type_link(request, job)),
        (_("Queue"), display.visible(job.queue)),
        (_("Priority"), job.priority),
        (_("Attempts"), tries_of(job, limit)),
        (_("Waited"), display.duration(job.wait_ms)),
        (_("Ran"), display.duration(job.run_ms)),
        (_("Worker"), display.visible(job.worker) or display.NOTHING),
        (_("Release"), display.visible(job.release) or display.NOTHING),
        (_("Expires"), display.full_moment(job.expires_at)),
        (_("Enqueued by"), display.visible(job.enqueued_by or display.NOTHING)),
        (_("Replay of"), read.origin()),
        (_("Replayed as"), read.replays()),
        (_("Failure group"), _group(job, read)),
    ]


def _group(job: Any, read: Reader) -> Any:
    return read.group(job.fingerprint, job.error_class) or display.NOTHING


def _timeline(job: Any) -> list[Step]:
    steps = [
        Step(gettext("created"), job.created_at),
        Step(gettext("due"), job.run_after),
    ]
    if job.started_at is not None:
        note = gettext("waited %(span)s") % {"span": display.duration(job.wait_ms)}
        steps.append(Step(gettext("started"), job.started_at, note))
    note = ""
    if job.run_ms is not None:
        note = gettext("ran %(span)s") % {"span": display.duration(job.run_ms)}
    return [*steps, Step(str(job.get_status_display()), job.finished_at, note)]


def _success(job: Any) -> list[Attempt]:
    """The attempt that succeeded stands on the job itself."""
    if job.status != ArchivedStatus.SUCCEEDED:
        return []
    return [
        Attempt(
            number=job.attempts,
            kind="succeeded",
            end=gettext("succeeded"),
            started_at=job.started_at,
            ran_ms=job.run_ms,
            worker=display.visible(job.worker),
            release=display.visible(job.release),
        )
    ]
