"""Ranges of time, with the addresses of django-admin-rangefilter.

Its own filter drops a range that is half filled in or cannot be read, and shows
everything; its template has inline scripts. This one completes the first, refuses the
second aloud, and is a plain form.
"""

from __future__ import annotations

import datetime as clock
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.contrib.admin.views.main import ChangeList
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_date, parse_time
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rangefilter.filters import DateTimeRangeFilter  # type: ignore[import-untyped]

from django_jobqueue.admin.lists.active_filters import Chip
from django_jobqueue.admin.parts.display import exact
from django_jobqueue.search import SearchError
from django_jobqueue.search.selection import Table, Term
from django_jobqueue.text import timezones

START_OF_DAY = clock.time.min
END_OF_DAY = clock.time.max

T = TypeVar("T")

HOUR = timedelta(hours=1)


class WholeDay(int):
    """A day that is so many days after today."""


LATELY = (
    (_("Last 15 minutes"), -HOUR / 4, None),
    (_("Last hour"), -HOUR, None),
    (_("Last 24 hours"), -HOUR * 24, None),
    (_("Last 7 days"), -HOUR * 24 * 7, None),
    (_("Today"), WholeDay(0), WholeDay(0)),
    (_("Yesterday"), WholeDay(-1), WholeDay(-1)),
)
AROUND_NOW = (
    (_("Overdue"), None, timedelta(0)),
    (_("Next hour"), timedelta(0), HOUR),
    (_("Next 24 hours"), timedelta(0), HOUR * 24),
    (_("Later"), HOUR * 24, None),
)


class RangeError(Exception):
    """A range that cannot be understood; the message says why."""


class Bound(NamedTuple):
    """One end of a range, as it was typed."""

    date: str
    time: str
    is_end: bool = False

    def at(self) -> datetime | None:
        """The moment; None if nothing was typed. Raises RangeError."""
        if not self.date and not self.time:
            return None
        if not self.date:
            raise RangeError(gettext("A time needs a date."))
        day = _parsed(parse_date, self.date)
        if day is None:
            raise RangeError(gettext("“%s” is not a date.") % self.date[:40])
        return timezones.aware(datetime.combine(day, self._time()))

    def _time(self) -> clock.time:
        if not self.time:
            return END_OF_DAY if self.is_end else START_OF_DAY
        parsed = _parsed(parse_time, self.time)
        if parsed is None or parsed.tzinfo is not None:
            raise RangeError(gettext("“%s” is not a time.") % self.time[:40])
        if self.is_end and not parsed.microsecond:
            return parsed.replace(microsecond=999_999)  # the whole of this second
        return parsed


class TimeRangeFilter(DateTimeRangeFilter):  # type: ignore[misc]
    """From one time to another, both included."""

    template = "admin/jobqueue/range_filter.html"
    presets: ClassVar[tuple[Any, ...]] = LATELY
    selects: ClassVar[str] = "finished"
    folded: ClassVar[bool] = False  # unless it is used

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.error = ""
        self.start: datetime | None = None
        self.end: datetime | None = None
        try:
            self.start, self.end = (bound.at() for bound in self.bounds)
            if self.start and self.end and self.start > self.end:
                raise RangeError(gettext("It ends before it begins."))
        except RangeError as problem:
            self.error = str(problem)

    @property
    def is_used(self) -> bool:
        """True if anything was typed."""
        return any(self.used_parameters.values())

    @property
    def _mine(self) -> list[str]:
        return list(self.expected_parameters())

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        """The typed bounds."""
        typed = [
            str(self.used_parameters.get(name) or "").strip() for name in self._mine
        ]
        return Bound(typed[0], typed[1]), Bound(typed[2], typed[3], is_end=True)

    def get_form(self, request: HttpRequest) -> None:
        """No form of the package's: a list of values becomes the last of them."""
        for name, value in self.used_parameters.items():
            if isinstance(value, list):
                self.used_parameters[name] = value[-1]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """All: the list goes by the terms of its filters."""
        return queryset

    def terms(self, table: Table) -> list[Term]:
        """Not before, and not after. Raises SearchError if it is not clear."""
        if self.error:
            raise SearchError(self.error)
        ends = ((self.start, ">="), (self.end, "<="))
        return [Term(self.selects, at, operator) for at, operator in ends if at]

    def chips(self, changelist: ChangeList) -> Iterator[Chip]:
        """The range in words."""
        if self.is_used:
            start, end = (exact(at) if at else "" for at in (self.start, self.end))
            without = changelist.get_query_string(dict.fromkeys(self._mine))
            yield Chip(self.title, self.error or f"{start} – {end}", without)

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        """One choice: the form, with the other filters as hidden fields."""
        others = [
            (name, value)
            for name, values in changelist.filter_params.items()
            if name not in self._mine
            for value in values
        ]
        start, end = self.bounds
        yield {
            "names": self._mine,
            "start": start,
            "end": end,
            "others": others,
            "presets": [self._preset(changelist, *preset) for preset in self.presets],
            "clear": changelist.get_query_string(dict.fromkeys(self._mine)),
        }

    def _preset(
        self,
        changelist: ChangeList,
        label: Any,
        start: timedelta | WholeDay | None,
        end: timedelta | WholeDay | None,
    ) -> dict[str, Any]:
        now = timezones.now()
        values: list[str | None] = []
        for offset in (start, end):
            if offset is None:
                values += [None, None]
            elif isinstance(offset, WholeDay):
                day = timezones.local(now).date() + timedelta(days=offset)
                values += [f"{day:%Y-%m-%d}", None]
            else:
                at = timezones.local(now + offset)
                values += [f"{at:%Y-%m-%d}", f"{at:%H:%M:%S}"]
        parameters = dict(zip(self._mine, values, strict=True))
        return {"label": label, "link": changelist.get_query_string(parameters)}


class ColumnRangeFilter(TimeRangeFilter):
    """The range of a column, in lists that do not go by terms."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows within the range; none if it is not clear."""
        if self.error:
            return queryset.none()
        if self.start:
            queryset = queryset.filter(**{f"{self.field_path}__gte": self.start})
        if self.end:
            queryset = queryset.filter(**{f"{self.field_path}__lte": self.end})
        return queryset


class CreatedRangeFilter(TimeRangeFilter):
    """When jobs were enqueued."""

    selects = "created"
    folded = True


class StartedRangeFilter(TimeRangeFilter):
    """When the last attempt of jobs started."""

    selects = "started"
    folded = True


class DueRangeFilter(TimeRangeFilter):
    """When jobs are due."""

    presets = AROUND_NOW
    selects = "due"


def parameters_of(field_path: str) -> list[str]:
    """The parameters of a range of this field, as django-admin-rangefilter names
    them."""
    return [
        f"{field_path}__range__{end}_{part}" for end in ("gte", "lte") for part in "01"
    ]


def _parsed(parse: Callable[[str], T | None], text: str) -> T | None:
    try:
        return parse(text)
    except ValueError:
        return None
