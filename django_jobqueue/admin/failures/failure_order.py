"""The orders of the list of failure groups: the latest, the most frequent, the newest,
the widest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import models
from django.db.models import Case, Count, F, OuterRef, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce, Round
from django.db.models.query import QuerySet
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.models import FailureGroup, FailureRollup
from django_jobqueue.text import timezones

SORT: Final = "sort"  # in the address
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
LATEST: Final = ("last_seen", "fingerprint")
RANK: Final = "rank"  # what the list is ordered by first, where that is no column


class FailureOrder(NamedTuple):
    """An order of the list."""

    name: str  # in the address
    label: Any
    rank: Callable[[datetime], Any] | None = None  # at this moment
    span: timedelta = DAY  # that the rank is about
    columns: tuple[str, ...] = LATEST

    @property
    def key(self) -> Key:
        """The key after which a page begins."""
        if self.rank is None:
            return Key(FailureGroup, self.columns)
        ranks = {RANK: models.IntegerField()}
        return Key(FailureGroup, (RANK, *self.columns), computed=ranks)

    def ranked(self, groups: QuerySet[Any]) -> QuerySet[Any]:
        """The groups with what they are ordered by; a group that did not fail for so
        long has the rank 0, and its roll-ups are not read."""
        if self.rank is None:
            return groups
        now = timezones.now()
        rank = Coalesce(Subquery(self.rank(now)), 0, output_field=models.IntegerField())
        lately = When(last_seen__gte=now - self.span - HOUR, then=rank)
        ranks = {RANK: Case(lately, default=Value(0))}
        ranked: QuerySet[Any] = groups.alias(**ranks)
        return ranked


def share_of_last_hour(now: datetime) -> float:
    """The part of the hour before that is less than an hour ago."""
    return 1 - (now - start_of_hour(now)) / HOUR


def start_of_hour(moment: datetime) -> datetime:
    """The full hour before; roll-ups begin at one."""
    return moment.replace(minute=0, second=0, microsecond=0)


def _rollups(since: datetime) -> Any:
    rows = FailureRollup.objects.filter(
        fingerprint=OuterRef("fingerprint"), bucket__gte=since
    )
    return rows.values("fingerprint")  # one group, one row


def _of_hour(now: datetime) -> Any:
    """As many as the roll-ups of two hours tell about sixty minutes."""
    current = start_of_hour(now)
    weight = Case(
        When(bucket__gte=current, then=Value(1.0)),
        default=Value(share_of_last_hour(now)),
        output_field=models.FloatField(),
    )
    total = Round(Sum((F("failed") + F("retried")) * weight))
    counted = _rollups(current - HOUR).annotate(total=total)
    return counted.values("total")


def _of_day(now: datetime) -> Any:
    counted = _rollups(start_of_hour(now) - DAY + HOUR).annotate(
        total=Sum(F("failed") + F("retried"))
    )
    return counted.values("total")


def _of_types(now: datetime) -> Any:
    counted = _rollups(start_of_hour(now) - DAY + HOUR).annotate(
        total=Count("job_type", distinct=True)
    )
    return counted.values("total")


ORDERS: Final = {
    order.name: order
    for order in (
        FailureOrder("", _("last seen")),
        FailureOrder("hour", _("failures in 1 h"), _of_hour, HOUR),
        FailureOrder("day", _("failures in 24 h"), _of_day),
        FailureOrder("new", _("first seen"), columns=("first_seen", "fingerprint")),
        FailureOrder("types", _("job types"), _of_types),
    )
}
