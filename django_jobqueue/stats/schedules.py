"""How schedules stand: whether they fire, when next, and how their last job ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_jobqueue.conf import conf
from django_jobqueue.domain.due_firings import LATE_AFTER, Period
from django_jobqueue.domain.schedule_rules import (
    EPOCH,
    Cron,
    Every,
    ScheduleRule,
    known_time_zone,
    parse,
)
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models import Schedule
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.claimers import Claimer
from django_jobqueue.store.schedules.schedule_status import (
    ScheduleStatus,
    schedule_statuses,
)
from django_jobqueue.text import numbers

BAD: Final = (ArchivedStatus.FAILED, ArchivedStatus.EXPIRED)


class ScheduleState(TextChoices):
    """The state of a schedule, as people see it."""

    ACTIVE = "active", gettext_lazy("active")
    PAUSED = "paused", gettext_lazy("paused")
    OVERDUE = "overdue", gettext_lazy("overdue")
    BROKEN = "broken", gettext_lazy("cannot fire")  # its rule cannot be read
    ENDED = "ended", gettext_lazy("ended")  # there is no next moment
    GONE = "gone", gettext_lazy("gone")  # no code declares it any more


class ScheduleNow(NamedTuple):
    """A schedule at this moment."""

    row: Schedule
    status: ScheduleStatus
    state: ScheduleState
    rule: ScheduleRule | None  # in force; None if it cannot be read
    problem: str  # why it cannot
    next_at: datetime | None  # None where it does not fire
    is_served: bool  # whether some worker claims its jobs

    @property
    def fires(self) -> bool:
        """True if it fires, or should."""
        return self.state in (ScheduleState.ACTIVE, ScheduleState.OVERDUE)

    @property
    def bad_end(self) -> str:
        """The status of its last finished job, if that failed or expired, and was not
        replayed; else empty."""
        finished = self.status.finished
        if finished is None or finished.is_replayed or finished.status not in BAD:
            return ""
        return finished.status


def read(claimers: Sequence[Claimer], now: datetime) -> list[ScheduleNow]:
    """All schedules, by name."""
    rows = Schedule.objects.using(conf.database).select_related("job_type")
    return of(rows.order_by("name"), claimers, now)


def of(
    rows: Iterable[Schedule], claimers: Sequence[Claimer], now: datetime
) -> list[ScheduleNow]:
    """These schedules, in their order, which know their job types; ``claimers`` are the
    workers that live."""
    rows = list(rows)
    if not rows:
        return []
    by_name = schedule_statuses(DjangoDatabase(), [row.name for row in rows])
    return [
        _now(
            row,
            by_name.get(row.name) or ScheduleStatus(False, None),
            _is_served(row, claimers),
            now,
        )
        for row in rows
    ]


def period_of(row: Schedule) -> Period:
    """Between which moments a schedule fires."""
    return Period(starts_at=row.starts_at, ends_at=row.ends_at)


def zone_of(row: Schedule) -> tzinfo:
    """The time zone in force; UTC if there is none of this name."""
    try:
        return ZoneInfo(known_time_zone(row.time_zone_in_force))
    except ValueError:
        return UTC


def rule_of(row: Schedule) -> tuple[ScheduleRule | None, str]:
    """The rule in force, or why it cannot be read: a row may be edited in SQL, and time
    zones are renamed."""
    try:
        zone = known_time_zone(row.time_zone_in_force)
        return parse(row.rule_in_force, zone), ""
    except ValueError as error:
        return None, str(error)


def _now(
    row: Schedule, status: ScheduleStatus, is_served: bool, now: datetime
) -> ScheduleNow:
    rule, problem = rule_of(row)
    next_at = status.next_at
    if not status.is_planned and rule is not None:
        next_at = period_of(row).next_after(rule, now)
    state = _state(row, rule, next_at, now)
    does = state in (ScheduleState.ACTIVE, ScheduleState.OVERDUE)
    return ScheduleNow(
        row, status, state, rule, problem, next_at if does else None, is_served
    )


def _state(
    row: Schedule, rule: ScheduleRule | None, next_at: datetime | None, now: datetime
) -> ScheduleState:
    if row.gone_at is not None:
        return ScheduleState.GONE
    if row.paused:
        return ScheduleState.PAUSED
    if rule is None:
        return ScheduleState.BROKEN
    if next_at is None:
        return ScheduleState.ENDED
    is_late = next_at < now - LATE_AFTER
    return ScheduleState.OVERDUE if is_late else ScheduleState.ACTIVE


def _is_served(row: Schedule, claimers: Iterable[Claimer]) -> bool:
    options: Any = row.options if isinstance(row.options, dict) else {}
    queue = options.get("queue") or row.job_type.queue
    return any(claimer.claims(queue, row.job_type_id) for claimer in claimers)


def rule_text(rule: ScheduleRule) -> str:
    """A rule as people read it: "every 5 minutes", or the cron expression."""
    if isinstance(rule, Cron):
        return rule.expression
    text = _every(rule.interval)
    if rule.since == EPOCH:
        return text
    since = f"{rule.since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return _("%(rule)s since %(moment)s") % {"rule": text, "moment": since}


def typed_text(rule: ScheduleRule) -> str:
    """A rule as people type it, and as ``schedule_rules.parse`` reads it."""
    if isinstance(rule, Cron):
        return rule.expression
    count, unit = _in_units(rule)
    since = f" since {int(rule.since.timestamp())}" if rule.since != EPOCH else ""
    return f"every {count} {unit}{'' if count == 1 else 's'}{since}"


def _every(interval: timedelta) -> str:
    count, unit = _in_units(Every(interval))
    alone = {
        "second": _("every second"),
        "minute": _("every minute"),
        "hour": _("every hour"),
        "day": _("every day"),
    }
    if count == 1:
        return alone[unit]
    texts = {
        "second": ngettext("every %(count)s second", "every %(count)s seconds", count),
        "minute": ngettext("every %(count)s minute", "every %(count)s minutes", count),
        "hour": ngettext("every %(count)s hour", "every %(count)s hours", count),
        "day": ngettext("every %(count)s day", "every %(count)s days", count),
    }
    return texts[unit] % {"count": numbers.number(count)}


def _in_units(rule: Every) -> tuple[int, str]:
    """The interval in the largest unit of which it is a multiple."""
    seconds = round(rule.interval.total_seconds())
    units = ((86_400, "day"), (3_600, "hour"), (60, "minute"))
    return next(
        ((seconds // size, unit) for size, unit in units if not seconds % size),
        (seconds, "second"),
    )
