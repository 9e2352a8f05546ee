"""The archive: finished jobs and their actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.data_summaries import summaries
from django_jobqueue.admin.jobs.archived_page import page_of
from django_jobqueue.admin.jobs.download import Download
from django_jobqueue.admin.jobs.edit_data import ReplayEdited
from django_jobqueue.admin.jobs.export import EXPORTS
from django_jobqueue.admin.jobs.free_key import FreeKey
from django_jobqueue.admin.jobs.job_admin import JobAdmin, tries_of
from django_jobqueue.admin.jobs.job_page import JobPage
from django_jobqueue.admin.jobs.prune import PruneJobs
from django_jobqueue.admin.jobs.related_jobs import by_original, replay_cell, replays_of
from django_jobqueue.admin.jobs.replay import ReplayJobs
from django_jobqueue.admin.jobs.reveal import Reveal
from django_jobqueue.admin.lists.columns import column, moment_cell
from django_jobqueue.admin.lists.filters import (
    ErrorFilter,
    FailureGroupFilter,
    JobTypeFilter,
    PriorityFilter,
    QueueFilter,
    ReplayedFilter,
    StatusFilter,
    WorkerFilter,
)
from django_jobqueue.admin.lists.ranges import (
    CreatedRangeFilter,
    StartedRangeFilter,
    TimeRangeFilter,
)
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.search.selection import Table
from django_jobqueue.text import numbers


@dataclass(slots=True)
class RowContext:
    """Facts about an archived job that are not in its row."""

    job_type: JobType | None
    replays: list[Any] = field(default_factory=list)  # cells, newest first
    summary: str | None = None  # of its data


class ArchivedJobAdmin(JobAdmin):
    """Finished jobs."""

    page_actions: ClassVar[Sequence[Action]] = (
        ReplayJobs(),
        PruneJobs(),
        ReplayEdited(),
        FreeKey(),
        Download(),
        Reveal(),
        *EXPORTS,
    )
    action_columns = ("id", "job_type", "status", "expires_at")
    table = Table.ARCHIVED
    key_columns = ("finished_at", "id")
    large_columns = ("data", "result")
    list_columns = (
        "id",
        "job_type",
        "status",
        "attempts",
        "effective_max_attempts",
        "crashes",
        "wait_ms",
        "run_ms",
        "finished_at",
        "error_class",
        "error_message",
        "tags",
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
        ErrorFilter,
        ReplayedFilter,
        PriorityFilter,
        WorkerFilter,
        ("started_at", StartedRangeFilter),
        ("created_at", CreatedRangeFilter),
        FailureGroupFilter,
    )
    elsewhere = QueuedJob
    elsewhere_note = _("This job has not finished; it is among the queued jobs.")

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Job types, replays and data: a query each."""
        types = catalogue.job_types(request, {row.job_type_id for row in rows})
        ids = [row.pk for row in rows]
        replays = by_original(replays_of(ids)) if ids else {}
        about = summaries(request, self.table, rows)
        for row in rows:
            of_row = replays.get(row.pk, [])
            cells = [replay_cell(request, *columns) for original, *columns in of_row]
            job_type = types.get(row.job_type_id)
            row.row_context = RowContext(job_type, cells, about.get(row.pk))
        return rows

    @column(description=_("status"))
    def state(self, job: Any) -> Any:
        """The status, and the error if it failed."""
        error = display.error_cell(job.error_class, job.error_message)
        pill = _status_pill(job, is_answered=bool(job.row_context.replays))
        return display.lines([pill, *error])

    @column(description=_("attempts"))
    def tries(self, job: Any) -> Any:
        """Attempts, of how many; and crashes."""
        return tries_of(job, job.row_context.job_type)

    @column(description=_("waited"))
    def waited(self, job: Any) -> str:
        """From due to the start of the last attempt."""
        return display.short(numbers.duration(job.wait_ms))

    @column(description=_("ran"))
    def ran(self, job: Any) -> str:
        """The length of the last attempt."""
        return display.short(numbers.duration(job.run_ms))

    @column(description=_("finished"))
    def finished(self, job: Any) -> Any:
        """The moment when it finished."""
        return moment_cell(job, job.finished_at)

    @column(description=_("replayed"))
    def replayed(self, job: Any) -> Any:
        """The state of its latest replay, and the number of replays."""
        cells = job.row_context.replays
        if not cells:
            return display.NOTHING
        more = len(cells) - 1
        if not more:
            return cells[0]
        return format_html('{} <span class="jq-quiet">+{}</span>', cells[0], more)

    def page(self, request: HttpRequest, job: Any) -> JobPage:
        """The page of a finished job."""
        return page_of(request, job, _status_pill(job))


def _status_pill(job: Any, *, is_answered: bool = False) -> Any:
    """The status; not in red where the job was replayed."""
    known = job.status in ArchivedStatus.values
    style = job.status if known else "unknown"
    if is_answered:
        style += " jq-settled"
    return display.pill(style, job.get_status_display())
