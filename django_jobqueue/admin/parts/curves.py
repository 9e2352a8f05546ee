"""The curves of a job type, a queue or a release: what ended and how long it took, over
an hour, a day, a week or a month."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.history_charts import Event, History, Period, history
from django_jobqueue.models import AuditEntry
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.time_window import DAY, HOUR, WINDOWS, Window
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history as past
from django_jobqueue.store.reading.history import Part, ReleaseSpan

WINDOW: Final = "window"  # in the address
RELEASE: Final = "release"
COMPARE: Final = "compare"
BEFORE: Final = timedelta(days=2)  # a release that began earlier is no deploy
MOST_ACTS: Final = 30


@dataclass(frozen=True, slots=True)
class Choice:
    """A link to the same page with other figures."""

    label: Any
    url: str
    is_current: bool


class Curves(NamedTuple):
    """The charts, the ways to others, and what the marks mean."""

    history: History
    window: Any
    windows: Sequence[Choice]
    releases: Sequence[Choice]
    compare: Choice | None
    events: Sequence[tuple[Any, Event]]


def curves(request: HttpRequest, part: Part, about: str, *, sees_audit: bool) -> Curves:
    """Read and draw those of the address, by default of the last day. ``about`` is the
    name that the audit knows the object by."""
    window = WINDOWS.get(request.GET.get(WINDOW, ""), DAY)
    release = request.GET.get(RELEASE) or None
    compares = COMPARE in request.GET and window is not HOUR
    db, now = DjangoDatabase(), database_now()
    start = window.start(now)
    began = past.releases(db, start - BEFORE, part=part)
    shown = part._replace(release=release)
    before, shift = None, max(window.length, DAY.length)
    if compares:
        ended = start + window.length - shift
        before = past.spans(db, start - shift, window.step, part=shown, end=ended)
    events = [*deploys(began, start), *(_acts(start, about) if sees_audit else [])]
    spans = past.spans(db, start, window.step, part=shown)
    period = Period(window, start, now, spans, before, shift, events)
    return Curves(
        history=history(period),
        window=window.label,
        windows=[
            Choice(one.label, _address(request, WINDOW, one.name), one is window)
            for one in WINDOWS.values()
        ],
        releases=_releases(request, began, release),
        compare=_comparison(request, window, compares),
        events=[(display.full_moment(event.at), event) for event in events],
    )


def deploys(releases: Iterable[ReleaseSpan], start: datetime) -> list[Event]:
    """When the releases began that did so in the window."""
    text = _("release %(release)s began")
    return [
        Event("deploy", one.first, text % {"release": display.visible(one.release)})
        for one in releases
        if one.first > start
    ]


def _acts(start: datetime, about: str) -> list[Event]:
    """Operators' actions with it."""
    rows = AuditEntry.objects.filter(at__gte=start, about__contains=[about])
    return [
        Event("act", row.at, f"{display.visible(row.by)}: {display.visible(row.verb)}")
        for row in rows.order_by("-at")[:MOST_ACTS]
    ]


def _releases(
    request: HttpRequest, releases: Sequence[ReleaseSpan], current: str | None
) -> list[Choice]:
    """All of them together, and each; nothing to choose if there is but one."""
    names = [one.release for one in releases]
    if current is not None and current not in names:
        names.append(current)
    if len(names) < 2 and current is None:
        return []
    every = Choice(_("all releases"), _address(request, RELEASE, None), not current)
    return [
        every,
        *(
            Choice(
                display.visible(name), _address(request, RELEASE, name), name == current
            )
            for name in names
        ),
    ]


def _comparison(request: HttpRequest, window: Window, compares: bool) -> Choice | None:
    """With and without the period before; minutes are kept for an hour only."""
    if window is HOUR:
        return None
    label = _("compare with the day before")
    if window is not DAY:
        label = _("compare with the period before")
    value = None if compares else "1"
    return Choice(label, _address(request, COMPARE, value), compares)


def _address(request: HttpRequest, name: str, value: str | None) -> str:
    """This page with another value of a parameter."""
    query: QueryDict = request.GET.copy()
    query.pop(name, None)
    if value is not None:
        query[name] = value
    return f"?{query.urlencode()}#jq-curves"
