"""Schedules: the list, and the page of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.contrib.schedules.admin import schedule_cells as cells
from django_jobqueue.contrib.schedules.admin.schedule_actions import (
    DeleteSchedules,
    PauseSchedules,
    ResetSchedules,
    ResumeSchedules,
    RunSchedules,
)
from django_jobqueue.contrib.schedules.admin.schedule_edit import (
    EDIT,
    PREVIEW_MOMENTS,
    NewSchedule,
)
from django_jobqueue.contrib.schedules.admin.schedule_page import (
    page_of,
    summary_of,
    type_link,
)
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.contrib.schedules.schedule_states import (
    ScheduleNow,
    ScheduleState,
    zone_of,
)

NEW: Action = NewSchedule()
FAILED = "failed"
UNSERVED = "unserved"


class ScheduleStateFilter(ChoiceFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            *ScheduleState.choices,
            (FAILED, _("last job failed")),
            (UNSERVED, _("no worker claims its jobs")),
        ]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The schedules in this state, which depends on their rules."""
        rows = Schedule.objects.select_related("job_type")
        states = cells.read(self.request, rows)
        return queryset.filter(
            pk__in=[one.row.pk for one in states if _is_in(one, value)]
        )


def _is_in(one: ScheduleNow, value: str) -> bool:
    if value == FAILED:
        return bool(one.bad_end)
    if value == UNSERVED:
        return one.fires and not one.is_served
    return one.state == value


class OriginFilter(ChoiceFilter):
    title = _("origin")
    parameter_name = "origin"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(Origin.choices)


class JobTypeFilter(ChoiceFilter):
    title = _("job type")
    parameter_name = "job_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        names = Schedule.objects.order_by("job_type_id").values_list("job_type_id")
        return [(name, display.visible(name)) for (name,) in names.distinct()]


class ScheduleAdmin(ActionAdmin):
    """Schedules: declared in code or made here; overridden, paused and run."""

    change_form_template = "admin/jobqueue_schedules/schedule.html"
    page_actions: ClassVar[Sequence[Action]] = (
        RunSchedules(),
        PauseSchedules(),
        ResumeSchedules(),
        EDIT,
        ResetSchedules(),
        DeleteSchedules(),
        NEW,
        PREVIEW_MOMENTS,
    )
    ordering = ("name",)
    list_select_related = ("job_type",)
    list_per_page = 100
    list_display = (
        "schedule_name",
        "state",
        "rule_shown",
        "next_firing",
        "last_firing",
        "jobs_type",
    )
    list_display_links = ("schedule_name",)
    list_filter = (ScheduleStateFilter, OriginFilter, JobTypeFilter)

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": [
                "django_jobqueue/job.css",
                "django_jobqueue/machines.css",
                "jobqueue_schedules/schedules.css",
            ]
        }

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        for row, one in zip(rows, cells.read(request, rows), strict=True):
            row.now = one
            row.newest_cell = cells.newest_cell(request, one)
            row.type_link = type_link(request, row)
        return rows

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        extra = {"new": self.address_of(NEW) if self.may_do(request, NEW) else ""}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        (one,) = cells.read(request, [context["original"]])
        context["state"] = cells.state_cell(one)
        context["summary"] = summary_of(request, one)
        context["page"] = page_of(request, one)
        return super().render_change_form(request, context, *args, **kwargs)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """Whoever deletes a schedule comes from its page: on to the list."""
        return HttpResponseRedirect(self.list_url)

    @column(description=_("name"))
    def schedule_name(self, row: Schedule) -> Any:
        return display.breakable(row.name)

    @column(description=_("state"))
    def state(self, row: Any) -> Any:
        return cells.state_cell(row.now)

    @column(description=_("rule, time zone"))
    def rule_shown(self, row: Any) -> Any:
        return cells.rule_cell(row.now)

    @column(description=_("next firing"))
    def next_firing(self, row: Any) -> Any:
        return cells.moment_cell(row.now.next_at, zone_of(row))

    @column(description=_("last firing"))
    def last_firing(self, row: Any) -> Any:
        return row.newest_cell

    @column(description=_("job type"))
    def jobs_type(self, row: Any) -> Any:
        return row.type_link
