"""Queued and running jobs, and why they are not running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import jump_box
from django_jobqueue.admin.actions.action import Action, Button
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.data_summaries import summaries
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.jobs.cancel import CancelJobs, FailJobs
from django_jobqueue.admin.jobs.download import Download
from django_jobqueue.admin.jobs.edit_data import EditData
from django_jobqueue.admin.jobs.export import EXPORTS
from django_jobqueue.admin.jobs.free_key import FreeKey
from django_jobqueue.admin.jobs.job_admin import JobAdmin, tries_of
from django_jobqueue.admin.jobs.job_page import JobPage
from django_jobqueue.admin.jobs.queued_page import page_of, reasons_text
from django_jobqueue.admin.jobs.release import ReleaseJobs
from django_jobqueue.admin.jobs.reschedule import (
    AllowAttempts,
    RescheduleJobs,
    RunJobsNow,
)
from django_jobqueue.admin.jobs.reveal import Reveal
from django_jobqueue.admin.jobs.stack_dump import stack_dump_button
from django_jobqueue.admin.lists.columns import column, moment_cell
from django_jobqueue.admin.lists.filters import (
    ErrorFilter,
    JobTypeFilter,
    PriorityFilter,
    QueuedQueueFilter,
    StateFilter,
    WorkerFilter,
)
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.admin.lists.ranges import CreatedRangeFilter, DueRangeFilter
from django_jobqueue.admin.parts import catalogue, display, progress_bars
from django_jobqueue.domain.states import ALIVE, AttemptEnd, QueuedStatus
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    JobType,
    KeyLimit,
    Queue,
    Report,
    Worker,
)
from django_jobqueue.models.fields import ClockTimestamp
from django_jobqueue.search.selection import RUNNING, Selection, Table
from django_jobqueue.stats.why_not_running import why_not
from django_jobqueue.text import numbers, timezones

NOT_FAILURES = (AttemptEnd.SNOOZED, AttemptEnd.RELEASED)


@dataclass(slots=True)
class RowContext:
    """Facts about a queued job that are not in its row."""

    job_type: JobType | None
    paused: str = ""  # what is paused, in words
    worker: Worker | None = None
    error: Failure | None = None
    sees_workers: bool = False
    sees_types: bool = False
    sees_queues: bool = False
    sees_limits: bool = False
    why: Sequence[str] = ()  # it is not running, in words
    report: Report | None = None  # by the attempt that goes on
    summary: str | None = None  # of its data


class QueuedJobAdmin(JobAdmin):
    """Queued and running jobs."""

    page_actions: ClassVar[Sequence[Action]] = (
        RunJobsNow(),
        RescheduleJobs(),
        CancelJobs(),
        ReleaseJobs(),
        AllowAttempts(),
        FailJobs(),
        EditData(),
        FreeKey(),
        Download(),
        Reveal(),
        *EXPORTS,
    )
    action_columns = (
        "id",
        "job_type",
        "queue",
        "status",
        "expires_at",
        "worker_id",
        "unique_key",
        "unique_until_started",
        "run_after",
        "priority",
        "attempts",
        "max_attempts",
    )
    table = Table.QUEUED
    key_columns = ("id",)
    list_columns = (
        "id",
        "job_type",
        "queue",
        "priority",
        "status",
        "run_after",
        "expires_at",
        "created_at",
        "attempts",
        "max_attempts",
        "limit_key",
        "weight",
        "crashes",
        "started_at",
        "fence",
        "worker_id",
        "cancel_requested_at",
        "quarantined",
        "tags",
    )
    list_display = (
        "job",
        "state",
        "due",
        "reasons",
        "tries",
        "urgency",
        "queue_name",
    )
    list_filter = (
        StateFilter,
        JobTypeFilter,
        QueuedQueueFilter,
        ("run_after", DueRangeFilter),
        PriorityFilter,
        ErrorFilter,
        WorkerFilter,
        ("created_at", CreatedRangeFilter),
    )
    elsewhere = ArchivedJob
    elsewhere_note = _("This job has finished; it is in the archive.")

    def get_urls(self) -> list[URLPattern]:
        """Addresses that lead to a job wherever it is, before those of the objects."""
        return [
            *jump_box.urls(self.admin_site),
            *search_page.urls(self.admin_site),
            *super().get_urls(),
        ]

    def key_of(self, selection: Selection) -> Key:
        """Running jobs are few: the longest-running job comes first."""
        if RUNNING.isdisjoint(selection.values("state")):
            return self.key
        return Key(self.model, ("started_at", "id"), oldest_first=True)

    def buttons(self, request: HttpRequest, row: Any) -> list[Button]:
        """Also an action on the worker that runs the job."""
        asked = stack_dump_button(request, row)
        return [*super().buttons(request, row), *asked]

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Job types, queues, workers, last errors, progress and data: a query each."""
        types = catalogue.job_types(request, {row.job_type_id for row in rows})
        queues = catalogue.queues(request)
        workers = _workers({row.worker_id for row in rows if row.worker_id})
        reasons = why_not(rows, types=types, queues=queues, workers=workers.values())
        errors = _last_errors([row.pk for row in rows if row.attempts or row.crashes])
        report = progress_bars.reports_of(rows)
        sees_workers = may_view(request, Worker)
        sees_types, sees_queues = may_view(request, JobType), may_view(request, Queue)
        sees_limits = may_view(request, KeyLimit)
        about = summaries(request, self.table, rows)
        for row in rows:
            job_type = types.get(row.job_type_id)
            row.row_context = RowContext(
                job_type,
                _paused(job_type, queues.get(row.queue)),
                workers.get(row.worker_id),
                errors.get(row.pk),
                sees_workers,
                sees_types,
                sees_queues,
                sees_limits,
                reasons[row.pk],
                report.get(row.pk),
                about.get(row.pk),
            )
        return rows

    @column(description=_("priority"))
    def urgency(self, job: Any) -> str:
        """A greater priority runs sooner."""
        return numbers.number(job.priority)

    @column(description=_("state"))
    def state(self, job: Any) -> Any:
        """The state, the progress, and the error of the last attempt."""
        lines = [
            state_of(job, job.row_context),
            *progress_bars.bar_cell(job.row_context.report),
        ]
        error = job.row_context.error
        if error is not None:
            message = error.error_message or error.reason
            lines += display.error_cell(error.error_class, message)
        return display.lines(lines)

    @column(description=_("due or started"))
    def due(self, job: Any) -> Any:
        """The moment when it is due, or when it started."""
        if job.status == QueuedStatus.RUNNING:
            return moment_cell(job, job.started_at)
        return moment_cell(job, job.run_after)

    @column(description=_("why not running?"))
    def reasons(self, job: Any) -> Any:
        """The reasons why it is not running."""
        return reasons_text(job)

    @column(description=_("attempts"))
    def tries(self, job: Any) -> Any:
        """Attempts so far, of how many; and crashes."""
        return tries_of(job, job.row_context.job_type)

    def page(self, request: HttpRequest, job: Any) -> JobPage:
        """The page of a queued or running job."""
        (job,) = self.annotate(request, [job])
        state = state_of(job, job.row_context)
        return page_of(request, job, state)


def state_of(job: Any, row_context: RowContext) -> Any:
    """The state as a person sees it."""
    if job.status == QueuedStatus.RUNNING:
        return _running_state(job, row_context)
    now = timezones.now()
    if job.expires_at is not None and job.expires_at <= now:
        return display.pill("expired", gettext("expired, about to be archived"))
    if job.run_after <= now:
        state = display.pill("ready", gettext("ready"))
    elif job.attempts:
        limit = catalogue.max_attempts(job, row_context.job_type)
        text = gettext("retrying after failure %(count)s of %(limit)s") % {
            "count": numbers.number(job.attempts),
            "limit": "∞" if limit is None else numbers.number(limit),
        }
        state = display.pill("retrying", text)
    else:
        state = display.pill("later", gettext("later"))
    if row_context.paused:
        return format_html("{} {}", state, display.pill("paused", row_context.paused))
    return state


def _running_state(job: Any, row_context: RowContext) -> Any:
    if job.cancel_requested_at is not None:
        return display.pill("cancelling", gettext("cancelling"))
    worker = row_context.worker
    if worker is None:
        return display.pill("lapsed", gettext("running, its worker is gone"))
    name = {"worker": display.visible(worker.name)}
    if not worker.keeps_its_jobs(timezones.now()):
        state = display.pill("lapsed", gettext("lapsed on %(worker)s") % name)
    else:
        state = display.pill("running", gettext("running on %(worker)s") % name)
    return (
        display.link("worker", worker.pk, state) if row_context.sees_workers else state
    )


def _workers(ids: set[int]) -> dict[int, Worker]:
    """The living workers, and these."""
    alive = Q(state__in=ALIVE, lease_until__gt=ClockTimestamp())
    workers = Worker.objects.filter(alive | Q(pk__in=ids)).only(
        "name",
        "state",
        "lease_until",
        "queues",
        "running",
        "threads",
        "async_slots",
    )
    return {worker.pk: worker for worker in workers}


def _last_errors(ids: list[UUID]) -> dict[UUID, Failure]:
    """The last failure of each of these jobs; a snoozed attempt did not fail."""
    if not ids:
        return {}
    failures = (
        Failure.objects.filter(job_id__in=ids)
        .exclude(end__in=NOT_FAILURES)
        .order_by("job_id", "-number", "-id")
        .distinct("job_id")
        .only("job_id", "error_class", "error_message", "reason")
    )
    return {failure.job_id: failure for failure in failures}


def _paused(job_type: Any, queue: Any) -> str:
    if catalogue.is_paused(job_type):
        return gettext("job type paused")
    if catalogue.is_paused(queue):
        return gettext("queue paused")
    return ""
