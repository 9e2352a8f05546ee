"""The next moments of a rule, in its zone and in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import display
from django_jobqueue.admin.schedules.schedule_cells import in_zone
from django_jobqueue.domain.due_firings import Period
from django_jobqueue.domain.schedule_rules import ScheduleRule
from django_jobqueue.text import timezones

MANY: Final = 10


class Moment(NamedTuple):
    """A moment at which a schedule fires."""

    local: str
    utc: str
    away: str
    change: str = ""  # of the clocks since the moment before, if they change


class Moments(NamedTuple):
    """The next moments, or the reason why there are none."""

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
    at: datetime | None = now
    while len(moments) < MANY and at is not None:
        at = period.next_after(rule, at)
        if at is not None:
            moments.append(at)
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
    """How the clocks change between these moments."""
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
