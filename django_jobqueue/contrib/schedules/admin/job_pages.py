"""Schedules on the pages of jobs and job types, and in the box that leads to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may, may_view
from django_jobqueue.admin.jobs.related_jobs import Fact
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.types.job_type_page import JobTypePart
from django_jobqueue.contrib.schedules.admin import schedule_cells as cells
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.contrib.schedules.schedule_states import zone_of
from django_jobqueue.models import JobType
from django_jobqueue.text import timezones

PAGE: Final = Schedule._meta.label_lower


def of_job(request: HttpRequest, metadata: Any) -> list[Fact]:
    """The schedule that enqueued this job, and for which moment; most have none."""
    name = metadata.get("schedule") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not Schedule.objects.filter(pk=name).exists():
        return []  # gone, or a word of the project's own, which may be secret
    shown: Any = display.visible(name)
    if may_view(request, Schedule):
        shown = display.link(PAGE, name, shown)
    at = _moment(metadata.get("fires_at"))
    parts = [shown] if at is None else [shown, display.full_moment(at)]
    return [(_("Schedule"), display.lines(parts))]


def _moment(text: Any) -> datetime | None:
    try:
        return timezones.aware(datetime.fromisoformat(text))
    except (TypeError, ValueError, OverflowError):
        return None


def of_job_type(request: HttpRequest, job_type: JobType) -> JobTypePart:
    """Those whose jobs are of this type, for users who may see them."""
    if not may_view(request, Schedule):
        return JobTypePart("")
    rows = Schedule.objects.filter(job_type_id=job_type.name).order_by("name")
    rows = rows.select_related("job_type")
    shown = [
        {
            "name": display.link(PAGE, one.row.pk, display.visible(one.row.pk)),
            "rule": cells.rule_cell(one),
            "next": cells.moment_cell(one.next_at, zone_of(one.row)),
            "last": cells.newest_cell(request, one),
            "state": cells.state_cell(one),
        }
        for one in cells.read(request, rows)
    ]
    template = "admin/jobqueue_schedules/of_job_type.html"
    section = render_to_string(template, {"schedules": shown}, request) if shown else ""
    if not may(request, "jobqueue_schedules.add_schedule"):
        return JobTypePart(section)
    new = reverse("admin:jobqueue_schedules_schedule_new")
    query = urlencode({"job_type": job_type.name})
    return JobTypePart(section, [(f"{new}?{query}", _("New schedule"))])


def jump(request: HttpRequest, name: str) -> str:
    """The page of the schedule of this name, unless it is that of its job type."""
    if not may_view(request, Schedule):
        return ""
    row = Schedule._default_manager.filter(pk=name).exclude(job_type=name).first()
    return display.url_of(PAGE, row.pk) if row else ""
