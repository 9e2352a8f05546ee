"""How schedules stand: whether they fire, when next, and how their last job ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_jobqueue.conf import conf
from django_jobqueue.contrib.schedules.due_firings import LATE_AFTER
from django_jobqueue.contrib.schedules.due_schedules import PLAN
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.schedule_rules import (
    EPOCH,
    Cron,
    Every,
    ScheduleRule,
    known_time_zone,
    parse,
)
from django_jobqueue.domain.schedules import Period
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.stats.attention import Concern
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.stats.overview import FRESH, Now
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.reading.claimers import Claimer, is_alive
from django_jobqueue.text import numbers
from django_jobqueue.text.numbers import span

# With a job, among which the last finished job is found.
MOST_FIRINGS: Final = 5

# Both statuses are looked up by the primary key of a job, one by one: a join could read
# the whole archive.
_QUEUED: Final = "(SELECT job.status FROM jobqueue_queuedjob AS job WHERE job.id = {})"
_ARCHIVED: Final = (
    "(SELECT job.status FROM jobqueue_archivedjob AS job WHERE job.id = {})"
)

# A job that was replayed is no longer the last word.
SCHEDULE_STATUSES: Final = f"""
SELECT schedule.name, schedule.planned_for = {PLAN}, schedule.next_at,
       newest.fires_at, newest.outcome, newest.number, newest.by, newest.job_id,
       coalesce({_QUEUED.format("newest.job_id")}, {_ARCHIVED.format("newest.job_id")}),
       finished.job_id, finished.status,
       EXISTS (SELECT FROM jobqueue_queuedjob AS again
                WHERE again.replay_of = finished.job_id)
       OR EXISTS (SELECT FROM jobqueue_archivedjob AS again
                   WHERE again.replay_of = finished.job_id)
  FROM jobqueue_schedules_schedule AS schedule
  LEFT JOIN LATERAL (
    SELECT firing.* FROM jobqueue_schedules_firing AS firing
     WHERE firing.schedule = schedule.name
     ORDER BY firing.fires_at DESC LIMIT 1) AS newest ON true
  LEFT JOIN LATERAL (
    SELECT made.job_id, made.status
      FROM (SELECT firing.fires_at, firing.job_id,
                   {_ARCHIVED.format("firing.job_id")} AS status
              FROM jobqueue_schedules_firing AS firing
             WHERE firing.schedule = schedule.name AND firing.job_id IS NOT NULL
             ORDER BY firing.fires_at DESC LIMIT {MOST_FIRINGS}) AS made
     WHERE made.status IS NOT NULL
     ORDER BY made.fires_at DESC LIMIT 1) AS finished ON true
 WHERE schedule.name = ANY (%(names)s::text[])
"""


class NewestFiring(NamedTuple):
    fires_at: datetime
    outcome: str
    number: int  # of firings that it stands for, if they were missed
    by: str
    job_id: UUID | None
    status: str | None  # of the job; None if it has none, or it was pruned


class FinishedJob(NamedTuple):
    id: UUID
    status: str
    is_replayed: bool


class ScheduleStatus(NamedTuple):
    is_planned: bool  # by the rule that it has now
    next_at: datetime | None
    newest: NewestFiring | None = None
    finished: FinishedJob | None = None


def schedule_statuses(db: Database, names: Sequence[str]) -> dict[str, ScheduleStatus]:
    if not names:
        return {}
    by_name = {}
    for row in db.fetch(SCHEDULE_STATUSES, {"names": list(names)}):
        name, is_planned, next_at, *newest = row[:9]
        id, status, is_replayed = row[9:]
        by_name[name] = ScheduleStatus(
            is_planned,
            next_at,
            NewestFiring(*newest) if newest[0] else None,
            FinishedJob(id, status, is_replayed) if id else None,
        )
    return by_name


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
    row: Schedule
    status: ScheduleStatus
    state: ScheduleState
    rule: ScheduleRule | None  # in force; None if it cannot be read
    problem: str  # why it cannot
    next_at: datetime | None  # None where it does not fire
    is_served: bool  # whether some worker claims its jobs

    @property
    def fires(self) -> bool:
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


# Concerns of the core that are as urgent as ours.
UNSERVED: Final = "queue_not_served_for_job_type"
FAILED: Final = "old_transaction"
GONE: Final = "new_failure"


class Schedules(NamedTuple):
    now: Now
    schedules: list[ScheduleNow]  # by name


_schedules: CachedValue[Schedules] = CachedValue()


def concerns(now: Now) -> Iterator[Concern]:
    """Schedules that do not fire, or whose jobs are not done. That nobody fires at all,
    or claims, is said by other notices."""
    hosts_live = any(is_alive(worker) for worker in now.present.workers)
    somebody_claims = bool(now.present.claimers())
    held = _schedules.get(
        conf.database, FRESH, lambda: _read(now), fits=lambda held: held.now is now
    )
    for one in held.schedules:
        place, name = (one.row._meta.label_lower, one.row.name), {"name": one.row.name}
        if one.state == ScheduleState.BROKEN:
            text = _("Schedule %(name)s cannot fire: %(why)s.")
            text %= {**name, "why": one.problem}
            yield Concern("schedule_not_fired", text, *place, after=UNSERVED)
        elif one.state == ScheduleState.OVERDUE and one.next_at and hosts_live:
            late = (now.present.time - one.next_at).total_seconds()
            text = _("Schedule %(name)s has not fired; it was due %(time)s ago.")
            text %= {**name, "time": span(late)}
            yield Concern(
                "schedule_not_fired", text, *place, weight=late, after=UNSERVED
            )
        elif one.state == ScheduleState.GONE:
            text = _("Schedule %(name)s is no longer declared by any code.") % name
            yield Concern("schedule_gone", text, *place, is_bad=False, after=GONE)
        if one.fires and somebody_claims and not one.is_served:
            text = _(
                "Schedule %(name)s enqueues jobs of type %(type)s, which no living "
                "worker claims."
            ) % {**name, "type": one.row.job_type_id}
            yield Concern("schedule_not_served", text, *place, after=UNSERVED)
        if one.fires and one.bad_end:
            text = _bad_end(one.bad_end) % name
            yield Concern("schedule_failed", text, *place, after=FAILED)


def _bad_end(status: str) -> str:
    if status == ArchivedStatus.EXPIRED:
        return _("The last job of schedule %(name)s expired.")
    return _("The last job of schedule %(name)s failed.")


def _read(now: Now) -> Schedules:
    present = now.present
    return Schedules(now, read(present.claimers(), present.time))
