"""The page of a schedule: its next moments, its jobs, its history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import VIEW_DATA, may, may_view
from django_jobqueue.admin.limits.limit_keys import sees_keys
from django_jobqueue.admin.parts import catalogue, display, json_tree
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.admin.parts.json_text import parsed
from django_jobqueue.admin.parts.json_tree import JsonTree
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.contrib.schedules.admin import schedule_cells as cells
from django_jobqueue.contrib.schedules.admin.schedule_cells import Moments, moments_of
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.contrib.schedules.schedule_states import (
    ScheduleNow,
    period_of,
    rule_text,
    zone_of,
)
from django_jobqueue.domain.schedule_rules import parse
from django_jobqueue.models import JobType
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import MASK

MOST_FIRINGS: Final = 25
BEFORE: Final = "before"  # the parameter that pages the history

Facts = list[tuple[Any, Any]]


class FiringRow(NamedTuple):
    moment: Any
    outcome: Any
    job: Any
    late: str
    by: str


class FiringPage(NamedTuple):
    rows: Sequence[FiringRow]
    older: str  # the parameter of the next part; empty if this is the last
    is_newest: bool


class Line(NamedTuple):
    label: Any
    in_force: str
    code: str
    override: str

    @property
    def is_overridden(self) -> bool:
        return self.override != display.NOTHING


class SchedulePage(NamedTuple):
    moments: Moments
    lines: Sequence[Line]
    data: JsonTree
    code_data: JsonTree | None  # where the data are overridden
    options: JsonTree | None
    firings: FiringPage
    history: Sequence[LogEntry]


def page_of(request: HttpRequest, one: ScheduleNow) -> SchedulePage:
    row = one.row
    return SchedulePage(
        moments=_moments(one),
        lines=_lines(one) if row.origin == Origin.CODE else [],
        data=data_tree(request, row, row.data_in_force),
        code_data=None
        if row.data_override is None
        else data_tree(request, row, row.data),
        options=_options(request, row) if row.options else None,
        firings=_firings(request, row),
        history=entries(Schedule, row.pk),
    )


def summary_of(request: HttpRequest, one: ScheduleNow) -> Facts:
    row, zone = one.row, zone_of(one.row)
    return [
        (_("Rule"), cells.rule_words(one)),
        (_("Time zone"), cells.zone_text(row)),
        (_("Next firing"), cells.moment_cell(one.next_at, zone)),
        (_("Last firing"), cells.newest_cell(request, one)),
        (_("Job type"), type_link(request, row)),
        (_("Origin"), row.get_origin_display()),
        *_pause(one),
        (_("Missed firings"), row.get_missed_display()),
        (_("Overlap"), row.get_overlap_display()),
        *_seldom(row),
    ]


def type_link(request: HttpRequest, row: Schedule) -> Any:
    name = display.breakable(row.job_type_id)
    if may_view(request, JobType) and catalogue.job_type(request, row.job_type_id):
        return display.link("jobtype", row.job_type_id, name)
    return name


def data_tree(request: HttpRequest, row: Schedule, data: Any) -> JsonTree:
    """The data of its jobs, as this user may see them."""
    value = _value(data)
    if not may(request, VIEW_DATA):
        return json_tree.of_shape(value)
    return json_tree.of_value(value, sensitive_of(request, row))


def _options(request: HttpRequest, row: Schedule) -> JsonTree:
    """The options of its jobs, of which metadata, keys and followers are data, also of
    other job types."""
    value, job_type = row.options, catalogue.job_type(request, row.job_type_id)
    limit = job_type.limit_name if job_type else None
    if isinstance(value, dict) and not (limit and sees_keys(request, limit)):
        value = {k: MASK if k == "limit_key" else v for k, v in value.items()}
    value = _value(value)
    if not may(request, VIEW_DATA):
        return json_tree.of_shape(value)
    keys = [str(key) for some in catalogue.sensitive_keys(request) for key in some]
    return json_tree.of_value(value, keys)


def sensitive_of(request: HttpRequest, row: Schedule) -> list[str]:
    job_type = catalogue.job_type(request, row.job_type_id)
    return list(job_type.sensitive) if job_type else []


def _value(value: Any) -> Any:
    return parsed(json.dumps(value))


def _pause(one: ScheduleNow) -> Facts:
    row, facts = one.row, []
    if row.paused:
        facts = [
            (_("Paused by"), display.visible(row.paused_by) or display.NOTHING),
            (_("Paused"), display.full_moment(row.paused_at)),
            (
                _("Reason"),
                linked(display.visible(row.paused_reason)) or display.NOTHING,
            ),
        ]
    if row.gone_at is not None:
        facts.append((_("Gone since"), display.full_moment(row.gone_at)))
    return facts


def _seldom(row: Schedule) -> Facts:
    return [
        *([(_("Jitter"), numbers.length(row.jitter))] if row.jitter else []),
        *(
            (label, display.full_moment(at))
            for label, at in (
                (_("Starts"), row.starts_at),
                (_("Ends"), row.ends_at),
                (_("Declared"), row.declared_at),
            )
            if at is not None
        ),
    ]


def _moments(one: ScheduleNow) -> Moments:
    if one.rule is None:
        return Moments(problem=display.visible(one.problem))
    zone = one.row.time_zone_in_force
    return moments_of(one.rule, zone, period_of(one.row), one.next_at)


def _lines(one: ScheduleNow) -> list[Line]:
    row = one.row
    rule, zone = row.rule_override, row.time_zone_override
    return [
        Line(
            _("Rule"),
            cells.rule_words(one),
            rule_in_words(row.rule, row.time_zone),
            display.NOTHING if rule is None else rule_in_words(rule, row.time_zone),
        ),
        Line(
            _("Time zone"),
            cells.zone_text(row),
            display.visible(row.time_zone),
            display.NOTHING if zone is None else display.visible(zone),
        ),
    ]


def rule_in_words(text: str, zone: str) -> str:
    """The text of a rule in words; as it is, if it cannot be read."""
    try:
        return rule_text(parse(text, zone))
    except ValueError:
        return display.visible(text)


def _firings(request: HttpRequest, row: Schedule) -> FiringPage:
    firings = Firing.objects.filter(schedule=row.pk).order_by("-fires_at")
    before = _moment(request.GET.get(BEFORE, ""))
    if before is not None:
        firings = firings.filter(fires_at__lt=before)
    rows = list(firings[: MOST_FIRINGS + 1])
    shown = rows[:MOST_FIRINGS]
    status = cells.statuses([one.job_id for one in shown if one.job_id])
    zone = zone_of(row)
    is_last = len(rows) <= MOST_FIRINGS
    return FiringPage(
        rows=[
            FiringRow(
                moment=format_html(
                    '<time datetime="{}" title="{}">{}</time>',
                    one.fires_at.isoformat(),
                    display.ago(one.fires_at),
                    cells.in_zone(one.fires_at, zone),
                ),
                outcome=cells.outcome_text(one.outcome, one.number),
                job=cells.job_cell(request, one.job_id, status.get(one.job_id))
                if one.job_id
                else display.NOTHING,
                late=_late(one),
                by=display.visible(one.by) or display.NOTHING,
            )
            for one in shown
        ],
        older="" if is_last else shown[-1].fires_at.astimezone(UTC).isoformat(),
        is_newest=before is None,
    )


def _late(one: Firing) -> str:
    seconds = (one.created_at - one.fires_at).total_seconds()
    return numbers.duration(max(0, round(seconds * 1_000)))


def _moment(text: str) -> datetime | None:
    """A moment of an address; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
