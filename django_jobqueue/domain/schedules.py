"""The schedules that the code declares, by name; the app of schedules fires them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.schedule_rules import ScheduleRule

INSTANT: Final = timedelta(microseconds=1)


class Missed(TextChoices):
    """The jobs for firings that were due while no worker ran."""

    ONCE = "once", _("one job, for the newest")
    SKIP = "skip", _("no job")
    ALL = "all", _("a job for each")


class Overlap(TextChoices):
    """The choice to fire a schedule while its last job is not finished."""

    ALLOW = "allow", _("enqueue another job")
    SKIP = "skip", _("skip the firing")


class Period(NamedTuple):
    """Between which moments a schedule fires; None is without an end."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def next_after(self, rule: ScheduleRule, moment: datetime) -> datetime | None:
        """The first firing after this moment, in UTC; None if there is none."""
        if self.starts_at is not None and self.starts_at > moment:
            moment = self.starts_at - INSTANT
        next_at = rule.next_after(moment)
        if next_at is None or (self.ends_at is not None and next_at > self.ends_at):
            return None
        return next_at

    def firings(
        self, rule: ScheduleRule, after: datetime, until: datetime | None = None
    ) -> Iterator[datetime]:
        """The firings after one moment, in UTC, and up to another one."""
        at = self.next_after(rule, after)
        while at is not None and (until is None or at <= until):
            yield at
            at = self.next_after(rule, at)


class MissedPolicy(NamedTuple):
    """Which missed firings are made up for."""

    missed: Missed = Missed.ONCE
    within: timedelta = timedelta(days=1)  # older ones never are; at least a minute
    most: int = 100  # jobs, with ``all``


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDeclaration:
    """When jobs of a type are enqueued, and with which data."""

    name: str
    job_type: str
    rule: ScheduleRule
    time_zone: str  # of the rule, and in which its moments are shown
    data: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # of its jobs, as JSON
    missed: MissedPolicy = MissedPolicy()
    overlap: Overlap = Overlap.ALLOW
    jitter: timedelta = timedelta(0)
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def period(self) -> Period:
        """Between which moments it fires."""
        return Period(starts_at=self.starts_at, ends_at=self.ends_at)


class Schedules:
    """Schedules by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, ScheduleDeclaration] = {}
        self.without_call: set[str] = set()  # names of ``at(…)`` without arguments

    def expect_call(self, name: str) -> None:
        """A schedule was begun, and is declared when it is called."""
        if name not in self._by_name:
            self.without_call.add(name)

    def add(self, schedule: ScheduleDeclaration) -> None:
        """Declare a schedule. Raises ImproperlyConfigured if its name is taken."""
        self.without_call.discard(schedule.name)
        held = self._by_name.setdefault(schedule.name, schedule)
        if held != schedule:
            raise ImproperlyConfigured(
                f"The schedule {schedule.name!r} is declared twice, as "
                f"{held.rule.text!r} of {held.job_type!r} and as "
                f"{schedule.rule.text!r} of {schedule.job_type!r}. Give one of them "
                "another name: .at(…, name=…)."
            )

    def remove(self, name: str) -> None:
        """Forget a schedule (for tests)."""
        self._by_name.pop(name, None)
        self.without_call.discard(name)

    def get(self, name: str) -> ScheduleDeclaration | None:
        """The schedule of this name, or None."""
        return self._by_name.get(name)

    @property
    def names(self) -> list[str]:
        """The names of all schedules of the code."""
        return list(self._by_name)

    def __iter__(self) -> Iterator[ScheduleDeclaration]:
        return iter(list(self._by_name.values()))


schedules: Final = Schedules()
