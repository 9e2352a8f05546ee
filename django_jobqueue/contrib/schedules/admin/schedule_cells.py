"""How schedules read on the screen: rules, states, moments, firings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import dateformat
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.admin.workers.fleet import fleet
from django_jobqueue.contrib.schedules import schedule_states as schedules
from django_jobqueue.contrib.schedules.due_firings import FiringOutcome
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.contrib.schedules.schedule_states import (
    ScheduleNow,
    ScheduleState,
    rule_text,
)
from django_jobqueue.domain.schedule_rules import ScheduleRule
from django_jobqueue.domain.schedules import Period
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus, WorkerState
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.store.reading.claimers import Claimer
from django_jobqueue.text import numbers, timezones

# The class of the pill of each state and outcome.
PILLS: Final = {
    ScheduleState.ACTIVE: "ready",
    ScheduleState.PAUSED: "paused",
    ScheduleState.OVERDUE: "lapsed",
    ScheduleState.BROKEN: "failed",
    ScheduleState.ENDED: "ignored",
    ScheduleState.GONE: "ignored",
}
OUTCOMES: Final = {
    FiringOutcome.FIRED: "succeeded",
    FiringOutcome.LATE: "retrying",
    FiringOutcome.SKIPPED: "ignored",
    FiringOutcome.MISSED: "expired",
    FiringOutcome.MANUAL: "running",
}


def read(request: HttpRequest, rows: Iterable[Schedule]) -> list[ScheduleNow]:
    present = fleet(request)
    claimers = [
        Claimer(
            None if worker.queues is None else frozenset(worker.queues),
            present.known[worker.pk],
        )
        for worker in present.living
        if worker.state == WorkerState.RUNNING
    ]
    return schedules.of(rows, claimers, timezones.now())


def state_pill(one: ScheduleNow) -> Any:
    return display.pill(PILLS[one.state], one.state.label)


def state_cell(one: ScheduleNow) -> Any:
    return display.lines([state_pill(one), *troubles(one)])


def troubles(one: ScheduleNow) -> list[Any]:
    row = one.row
    texts: list[Any] = []
    if one.state == ScheduleState.PAUSED:
        parts = [display.visible(row.paused_by), display.visible(row.paused_reason)]
        texts.append(linked(": ".join(filter(None, parts))))
    elif one.state == ScheduleState.BROKEN:
        texts.append(display.visible(one.problem))
    elif one.state == ScheduleState.GONE:
        texts.append(_("no code declares it any more"))
    if one.fires and not one.is_served:
        texts.append(display.pill("failed", _("no living worker claims its jobs")))
    return [text for text in texts if text]


def rule_cell(one: ScheduleNow) -> Any:
    parts: list[Any] = [rule_words(one), zone_text(one.row)]
    if is_overridden(one.row):
        parts.append(display.pill("asked", _("overridden")))
    return display.lines(parts)


def rule_words(one: ScheduleNow) -> str:
    if one.rule is None:
        return display.visible(one.row.rule_in_force)
    return rule_text(one.rule)


def zone_text(row: Schedule) -> str:
    return display.visible(row.time_zone_in_force)


def is_overridden(row: Schedule) -> bool:
    overrides = (row.rule_override, row.time_zone_override, row.data_override)
    return any(value is not None for value in overrides)


def in_zone(at: datetime, zone: tzinfo, *, is_named: bool = True) -> SafeString:
    """A moment on the wall clock of this zone, with the day of the week, and the name
    of the zone."""
    local = at.astimezone(zone)
    return format_html(
        '<bdi>{}</bdi> <span dir="ltr">{}</span>',
        dateformat.format(local, "D"),
        f"{local:%Y-%m-%d %H:%M:%S %Z}" if is_named else f"{local:%Y-%m-%d %H:%M:%S}",
    )


def moment_cell(at: datetime | None, zone: tzinfo) -> Any:
    if at is None:
        return display.NOTHING
    exact = '<time datetime="{}">{}</time>'
    return display.lines(
        [
            format_html(exact, at.isoformat(), in_zone(at, zone)),
            display.short(display.ago(at)),
        ]
    )


def outcome_text(outcome: str, number: int) -> Any:
    known = FiringOutcome(outcome)
    text: Any = known.label
    if known is FiringOutcome.MISSED and number > 1:
        text = ngettext("%(count)s missed", "%(count)s missed", number)
        text %= {"count": numbers.number(number)}
    return display.pill(OUTCOMES[known], text)


def newest_cell(request: HttpRequest, one: ScheduleNow) -> Any:
    newest = one.status.newest
    if newest is None:
        return display.NOTHING
    parts = [
        outcome_text(newest.outcome, newest.number),
        display.moment(newest.fires_at),
    ]
    if newest.job_id is not None:
        parts.append(job_cell(request, newest.job_id, newest.status))
    return display.lines(parts)


def job_cell(request: HttpRequest, id: UUID, status: str | None) -> Any:
    if status is None:
        return format_html(
            '{} <span class="jq-quiet">{}</span>',
            display.short(display.short_id(id)),
            _("pruned"),
        )
    is_queued = status in QueuedStatus.values
    label = QueuedStatus(status).label if is_queued else ArchivedStatus(status).label
    model: Any = QueuedJob if is_queued else ArchivedJob
    name = display.short(display.short_id(id))
    shown = format_html("{} {}", name, display.pill(status, label))
    if not may_view(request, model):
        return shown
    return display.link(str(model._meta.model_name), id, shown)


def statuses(ids: Sequence[UUID]) -> dict[UUID, str]:
    if not ids:
        return {}
    queued = QueuedJob.objects.filter(pk__in=ids).order_by().values_list("pk", "status")
    archived = (
        ArchivedJob.objects.filter(pk__in=ids).order_by().values_list("pk", "status")
    )
    return {**dict(archived), **dict(queued)}


MANY: Final = 10


class Moment(NamedTuple):
    local: str
    utc: str
    away: str
    change: str = ""  # of the clocks since the moment before, if they change


class Moments(NamedTuple):
    zone: str = ""
    next: Sequence[Moment] = ()
    is_end: bool = False  # whether there are no more
    problem: str = ""


def moments_of(
    rule: ScheduleRule, zone: str, period: Period, first: datetime | None = None
) -> Moments:
    """The next moments of this rule. ``first`` is the one that is due already."""
    now = timezones.now()
    moments = [] if first is None or first > now else [first]
    moments += islice(period.firings(rule, now), MANY - len(moments))
    clock = ZoneInfo(zone)
    before = [now, *moments]
    return Moments(
        zone=display.visible(zone),
        next=[
            Moment(
                in_zone(at, clock),
                in_zone(at, UTC, is_named=False),
                display.ago(at),
                _change(earlier, at, clock),
            )
            for earlier, at in zip(before, moments, strict=False)
        ],
        is_end=len(moments) < MANY,
    )


def _change(earlier: datetime, at: datetime, zone: tzinfo) -> str:
    before, after = (_offset(moment, zone) for moment in (earlier, at))
    if before == after:
        return ""
    if after > before:
        text = _("clocks go forward: %(before)s → %(after)s")
    else:
        text = _("clocks go back: %(before)s → %(after)s")
    return text % {"before": _named(before), "after": _named(after)}


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def _named(offset: timedelta) -> str:
    minutes: Any = round(offset.total_seconds() / 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
