"""Two releases beside each other: what each job type did, and what failed in which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import F, Sum
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobqueue.admin.actions.action import ShowAction
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.models import FailureGroup, FailureRollup, JobType
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.totals import Line
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history
from django_jobqueue.text import numbers

PERIOD: Final = timedelta(days=30)
MOST_RELEASES: Final = 50
MOST_GROUPS: Final = 200  # that failed most often in either release
FEW: Final = 5  # failures that tell nothing yet
MORE: Final = 0.01  # of the finished jobs
MARGIN: Final = timedelta(days=1)  # a crash is counted by others, perhaps earlier
SLOWER: Final = 2.0  # times; two buckets of the histogram


class Side(NamedTuple):
    """The figures of a job type in one release."""

    finished: str
    failed: str
    half: str
    most: str


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A job type in both releases."""

    name: Any
    old: Side
    new: Side
    notes: Sequence[Any]  # what is worse
    rank: float = field(compare=False)


class GroupRow(NamedTuple):
    """A failure group in both releases."""

    group: Any
    message: Any
    old: str
    new: str


class GroupTable(NamedTuple):
    """Some of the groups."""

    title: Any
    rows: Sequence[GroupRow]


class Comparison(NamedTuple):
    """All of the page."""

    releases: Sequence[str]  # the newest first
    old: str
    new: str
    types: Sequence[TypeRow]
    groups: Sequence[GroupTable]


class CompareReleases(ShowAction):
    """The page."""

    name = "releases"

    def show(self, page: ActionAdmin, request: HttpRequest) -> HttpResponse:
        """The releases that the address names."""
        compared = comparison(request)
        title = _("Compare releases")
        return page.show(request, "releases.html", title=title, compared=compared)


def comparison(request: HttpRequest) -> Comparison:
    """Those that the address names, else the newest two."""
    db, start = DjangoDatabase(), database_now() - PERIOD
    spans = history.releases(db, start, most=MOST_RELEASES)
    names = [one.release for one in spans]
    newest = [*names, "", ""]
    new = request.GET.get("new") or newest[0]
    old = request.GET.get("old") or next((n for n in newest if n != new), "")
    if not old or "\x00" in new + old:
        return Comparison(names, old, new, (), ())
    groups = may_view(request, FailureGroup)
    firsts = {one.release: one.first for one in spans}
    # Nothing before is of these releases; a month of all was three times the work.
    start = max(start, min(firsts.get(name, start) for name in (old, new)) - MARGIN)
    return Comparison(
        releases=list(dict.fromkeys([*names, new, old])),
        old=old,
        new=new,
        types=_types(request, old, new, start),
        groups=_groups(old, new, start) if groups else (),
    )


def _types(request: HttpRequest, old: str, new: str, start: datetime) -> list[TypeRow]:
    lines = [_lines(release, start) for release in (old, new)]
    rows = []
    for name in sorted({*lines[0], *lines[1]}):
        before, after = (of.get(name) or Line(name) for of in lines)
        notes, rank = _worse(before, after)
        shown: Any = display.visible(name)
        if may_view(request, JobType):
            shown = display.link("jobtype", name, shown)
        rows.append(TypeRow(shown, _side(before), _side(after), notes, rank))
    return sorted(rows, key=lambda row: -row.rank)


def _lines(release: str, start: datetime) -> dict[str, Line]:
    lines: dict[str, Line] = {}
    for recent in history.of_release(DjangoDatabase(), release, start):
        lines.setdefault(recent.job_type, Line(recent.job_type)).add(recent)
    return lines


def _worse(before: Line, after: Line) -> tuple[list[Any], float]:
    """In words, and how much."""
    if not before.finished or not after.finished:
        return [], 0.0
    notes: list[Any] = []
    more = (after.failed_share or 0.0) - (before.failed_share or 0.0)
    if after.failed >= FEW and more >= MORE:
        notes.append(_("fails more often"))
    else:
        more = 0.0
    was, now = before.run_time(0.95), after.run_time(0.95)
    slower = now / was if was and now else 1.0
    if slower > SLOWER:
        notes.append(_("slower"))
    return notes, 100 * more + (slower if slower > SLOWER else 0.0)


def _side(line: Line) -> Side:
    if not line.finished:
        return Side(display.NOTHING, "", "", "")
    return Side(
        finished=numbers.number(line.finished),
        failed=numbers.percent(line.failed_share),
        half=numbers.run_time(line.run_time(0.5)),
        most=numbers.run_time(line.run_time(0.95)),
    )


def _groups(old: str, new: str, start: datetime) -> list[GroupTable]:
    rows = FailureRollup.objects.filter(bucket__gte=start, release__in=(old, new))
    counted = rows.values("fingerprint", "release").annotate(
        n=Sum(F("failed") + F("retried"))
    )
    counts: dict[UUID, dict[str, int]] = {}
    for one in counted.filter(n__gt=0).order_by("-n")[: 2 * MOST_GROUPS]:
        counts.setdefault(one["fingerprint"], {})[one["release"]] = one["n"]
    groups = FailureGroup.objects.only("error_class", "frame", "template").in_bulk(
        list(counts)
    )
    sorts: dict[Any, list[GroupRow]] = {label: [] for label in _SORTS}
    for fingerprint, of in counts.items():
        group = groups.get(fingerprint)
        if group is None:  # deleted meanwhile
            continue
        was, now = of.get(old, 0), of.get(new, 0)
        label = _SORTS[0 if not was else 1 if now else 2]
        sorts[label].append(
            GroupRow(
                group=display.group_link(fingerprint, group.error_class, group.frame),
                message=display.shown_text(group.template, display.CELL),
                old=numbers.number(was),
                new=numbers.number(now),
            )
        )
    return [GroupTable(label, some) for label, some in sorts.items() if some]


_SORTS: Final = (
    gettext_lazy("Fails in the newer release only"),
    gettext_lazy("Fails in both"),
    gettext_lazy("Failed in the older release only"),
)
