"""Decides which firings of a schedule are made now, and which were missed."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.schedule_rules import ScheduleRule, firings
from django_jobqueue.domain.schedules import INSTANT, Missed, MissedPolicy, Period

LATE_AFTER: Final = timedelta(seconds=60)
MOST_WALKED: Final = 10_000  # firings that one decision looks at


class Origin(TextChoices):
    CODE = "code", _("code")
    ADMIN = "admin", _("admin")


class FiringOutcome(TextChoices):
    FIRED = "fired", _("fired")
    LATE = "late", _("fired late")  # by more than a minute
    SKIPPED = "skipped", _("skipped")  # there is an unfinished job already
    MISSED = "missed", _("missed")  # no job was made, as ``missed`` says
    MANUAL = "manual", _("run by hand")


class DueFirings(NamedTuple):
    """The firings to make now, those that are not made, and the next one."""

    fire: list[datetime]
    missed: list[datetime]  # of a long outage only the newest, and the first
    next_at: datetime | None


def due_firings(
    rule: ScheduleRule,
    period: Period,
    policy: MissedPolicy,
    next_at: datetime,
    now: datetime,
) -> DueFirings:
    """Decide, at ``now``, on the firings from ``next_at`` on."""
    # However short ``within`` is: every host notices a moment a little late.
    oldest = now - max(policy.within, LATE_AFTER)
    until = now if period.ends_at is None else min(now, period.ends_at)
    if next_at >= oldest:
        due, missed = [next_at, *_newest(rule, next_at, until)], []
    else:
        due, missed = _newest(rule, oldest - INSTANT, until), [next_at]
    fire = _made(due, policy, now)
    missed += due[: len(due) - len(fire)]
    following = period.next_after(rule, max(now, next_at))
    return DueFirings(fire=fire, missed=missed, next_at=following)


def _newest(rule: ScheduleRule, after: datetime, until: datetime) -> list[datetime]:
    """The firings between these moments; if there are too many, of a later part."""
    while True:
        newest = list(islice(firings(rule, after, until), MOST_WALKED))
        if len(newest) < MOST_WALKED:
            return newest
        after += (until - after) / 2


def _made(due: list[datetime], policy: MissedPolicy, now: datetime) -> list[datetime]:
    if policy.missed is Missed.ALL:
        return due[-policy.most :]
    in_time = [moment for moment in due if now - moment <= LATE_AFTER]
    if in_time or policy.missed is Missed.SKIP:
        return in_time
    return due[-1:]
