"""The most frequent failures against time or against releases, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import ceil, log10
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, DateTimeField, F, Func, Max, Min, Sum, Value, Window
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobqueue.admin.actions.action import ShowAction
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.failures.failure_order import DAY, HOUR, SORT, start_of_hour
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.curves import Choice
from django_jobqueue.conf import conf
from django_jobqueue.models import ArchivedJob, FailureGroup, FailureRollup
from django_jobqueue.search.tokens import quoted
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.text import numbers, timezones

MOST_GROUPS: Final = 25  # of 24 cells each, with a link: 100 kB
MOST_RELEASES: Final = 8
LEVELS: Final = 4  # of the colour of a cell

# The span of each table, and of its columns.
WINDOWS: Final = {
    "24h": (gettext_lazy("24 hours"), DAY, HOUR),
    "7d": (gettext_lazy("7 days"), 7 * DAY, DAY / 2),
    "30d": (gettext_lazy("30 days"), 30 * DAY, 2 * DAY),
}


class Column(NamedTuple):
    """A span of time, or a release."""

    label: str
    condition: str  # the term that finds its jobs in the archive
    title: str = ""


class Cell(NamedTuple):
    """How often a group failed there."""

    text: str
    level: int  # 0 is never
    url: str
    column: str  # its label


class Row(NamedTuple):
    """A group, and its failures in each column."""

    group: Any
    message: Any
    is_new: bool  # it was first seen in the window
    cells: Sequence[Cell]
    total: str


class Matrix(NamedTuple):
    """The table, and the ways to others."""

    by: str  # time or release
    window: str  # its name
    choices: Sequence[Choice]
    columns: Sequence[Column]
    rows: Sequence[Row]
    others: int  # groups that failed less often, and are not shown
    all: str  # where those are


class FailureMatrix(ShowAction):
    """The page."""

    name = "matrix"

    def show(self, page: ActionAdmin, request: HttpRequest) -> HttpResponse:
        """The table that the address asks for."""
        return page.show(
            request,
            "failure_matrix.html",
            title=_("Failures by time and release"),
            matrix=matrix(request),
        )


def matrix(request: HttpRequest) -> Matrix:
    """The most frequent groups of the window that the address names, as counted at most
    a minute ago; longer windows change more slowly."""
    by = "release" if request.GET.get("by") == "release" else "time"
    name = request.GET.get("window", "")
    name = name if name in WINDOWS else "24h"
    _label, length, _step = WINDOWS[name]
    counted = _counted.get(
        f"{conf.database} {by} {name}",
        length.total_seconds() / 1_440,
        lambda: _count(by, name),
    )
    columns = _columns(by, name, counted)
    return Matrix(
        by=by,
        window=name,
        choices=[
            *(
                Choice(label, _address(by, other), other == name)
                for other, (label, _length, _step) in WINDOWS.items()
            ),
            Choice(_("by time"), _address("time", name), by == "time"),
            Choice(_("by release"), _address("release", name), by == "release"),
        ],
        columns=columns,
        rows=_rows(request, counted, columns),
        others=counted.groups - len(counted.totals),
        all=f"{reverse('admin:jobqueue_failuregroup_changelist')}?{SORT}=day",
    )


Counts = Counter[tuple[UUID, int]]  # by group and column


class Counted(NamedTuple):
    """The figures of a table. A month of five million jobs takes 150 ms to count."""

    start: datetime
    totals: dict[UUID, int]  # of the most frequent groups, in this order
    groups: int  # how many there are
    columns: Sequence[Any]  # the start of each span, or the name of each release
    counts: Counts


_counted: CachedValue[Counted] = CachedValue()


def forget() -> None:
    """Let the next reading be a new one."""
    _counted.forget()


def _count(by: str, window: str) -> Counted:
    _label, length, step = WINDOWS[window]
    end = start_of_hour(timezones.now()) + HOUR
    rows = FailureRollup.objects.filter(bucket__gte=end - length)
    ranked = rows.values("fingerprint").annotate(n=Sum(F("failed") + F("retried")))
    ranked = ranked.filter(n__gt=0).annotate(groups=Window(Count("*")))
    first = list(ranked.order_by("-n", "fingerprint")[:MOST_GROUPS])
    totals = {one["fingerprint"]: one["n"] for one in first}
    rows = rows.filter(fingerprint__in=list(totals))
    columns, counts = (
        _by_release(rows) if by == "release" else _by_time(rows, end, length, step)
    )
    groups = first[0]["groups"] if first else 0
    return Counted(end - length, totals, groups, columns, counts)


def _by_time(
    rows: Any, end: datetime, length: timedelta, step: timedelta
) -> tuple[list[datetime], Counts]:
    number = length // step
    starts = [end - (number - place) * step for place in range(number)]
    counts: Counts = Counter()
    since = Value(starts[0], output_field=DateTimeField())
    span: Any = Func(
        Value(step), F("bucket"), since, function="date_bin", output_field=since.field
    )
    for one in rows.values("fingerprint", span=span).annotate(
        n=Sum(F("failed") + F("retried"))
    ):
        counts[one["fingerprint"], (one["span"] - starts[0]) // step] += one["n"]
    return starts, counts


def _columns(by: str, window: str, counted: Counted) -> list[Column]:
    if by == "release":
        return [_release(name) for name in counted.columns]
    _label, _length, step = WINDOWS[window]
    form = "H:i" if step < DAY / 2 else "D j H:i" if step < DAY else "m-d"
    return [_span(start, step, form) for start in counted.columns]


def _span(start: datetime, step: timedelta, form: str) -> Column:
    first, last = (timezones.local(at) for at in (start, start + step))
    text = f"{first:%Y-%m-%dT%H:%M}..{last:%Y-%m-%dT%H:%M}"
    label = date_format(first, form, use_l10n=False)
    return Column(label, f"finished:{text}", f"{first:%Y-%m-%d %H:%M} – {last:%H:%M}")


def _by_release(rows: Any) -> tuple[list[str], Counts]:
    """The releases that failed last, the newest of them first."""
    spans = rows.values("release").annotate(first=Min("bucket"), last=Max("bucket"))
    names = [
        one["release"]
        for one in spans.order_by("-last", "-first", "-release")[:MOST_RELEASES]
    ]
    places = {name: place for place, name in enumerate(names)}
    counts: Counts = Counter()
    for one in (
        rows.filter(release__in=names)
        .values("fingerprint", "release")
        .annotate(n=Sum(F("failed") + F("retried")))
    ):
        counts[one["fingerprint"], places[one["release"]]] += one["n"]
    return names, counts


def _release(name: str) -> Column:
    shown = display.visible(name) or _("no release")
    return Column(shown, f"release:{quoted(name)}" if name else "")


def _rows(
    request: HttpRequest, counted: Counted, columns: Sequence[Column]
) -> list[Row]:
    counts = counted.counts
    groups = FailureGroup.objects.only(
        "error_class", "frame", "template", "first_seen"
    ).in_bulk(list(counted.totals))
    most = max(counts.values(), default=1)
    sees_jobs = may_view(request, ArchivedJob)
    rows = []
    for fingerprint, total in counted.totals.items():
        group = groups.get(fingerprint)
        if group is None:  # deleted meanwhile
            continue
        rows.append(
            Row(
                group=display.group_link(fingerprint, group.error_class, group.frame),
                message=display.shown_text(group.template, display.CELL),
                is_new=group.first_seen >= counted.start,
                cells=[
                    _cell(
                        counts[fingerprint, place],
                        most,
                        column,
                        fingerprint if sees_jobs else None,
                    )
                    for place, column in enumerate(columns)
                ],
                total=numbers.number(total),
            )
        )
    return rows


def _cell(count: int, most: int, column: Column, fingerprint: UUID | None) -> Cell:
    """With a link to the jobs, if there is a group to look for."""
    if not count:
        return Cell("", 0, "", column.label)
    url = ""
    if fingerprint is not None and column.condition:
        address = reverse("admin:jobqueue_archivedjob_changelist")
        query = {"q": column.condition, "fingerprint": str(fingerprint)}
        url = f"{address}?{urlencode(query)}"
    return Cell(numbers.number(count), _level(count, most), url, column.label)


def _level(count: int, most: int) -> int:
    """From 1 to ``LEVELS``, as the number of digits grows."""
    return max(1, ceil(LEVELS * log10(count + 1) / log10(most + 1)))


def _address(by: str, window: str) -> str:
    query: Iterable[tuple[str, str]] = [("window", window)]
    if by == "release":
        query = [*query, ("by", by)]
    return f"?{urlencode(list(query))}"
