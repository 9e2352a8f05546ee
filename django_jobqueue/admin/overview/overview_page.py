"""The overview: what the front page of the job queue shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue import rooms
from django_jobqueue.admin.overview import overview_tables
from django_jobqueue.admin.overview.overview_tables import (
    OperationRow,
    Table,
    WorkerRow,
)
from django_jobqueue.admin.parts import display, history_charts
from django_jobqueue.admin.parts.curves import Choice, deploys
from django_jobqueue.admin.parts.depths import age_text
from django_jobqueue.admin.parts.history_charts import History, Period
from django_jobqueue.admin.tabs import address_of
from django_jobqueue.conf import conf
from django_jobqueue.stats import attention, overview
from django_jobqueue.stats.attention import Concern
from django_jobqueue.stats.overview import Overview
from django_jobqueue.stats.time_window import HOUR, WINDOWS
from django_jobqueue.store.reading.claimers import has_lapsed, is_alive
from django_jobqueue.text import numbers

PARAMETER: Final = "window"


class Card(NamedTuple):
    """One number, what it is of, and whether it is worrying."""

    label: str
    value: str
    note: str = ""
    url: str = ""
    is_bad: bool = False


class Pointer(NamedTuple):
    """A concern as it is shown."""

    text: str
    url: str
    is_bad: bool
    others: str


class OverviewLine(NamedTuple):
    """A feature's remark on one object."""

    text: str
    url: str
    since: str


class OverviewList(NamedTuple):
    """A feature's lists below the notices."""

    title: str
    url: str  # of all of them
    lines: Sequence[OverviewLine]


class Page(NamedTuple):
    """All that the template shows."""

    window: Any
    choices: Sequence[Choice]
    cards: Sequence[Card]
    pointers: Sequence[Pointer]
    lists: Sequence[OverviewList]
    history: History
    types: Table
    queues: Table
    workers: Sequence[WorkerRow]
    more_workers: int
    operations: Sequence[OperationRow]


def page(request: HttpRequest) -> Page:
    """The figures as this user may see them; of the last hour, unless the address has
    another window."""
    window = WINDOWS.get(request.GET.get(PARAMETER, ""), HOUR)
    figures = overview.read(window)
    workers = overview_tables.workers(request, figures)
    return Page(
        window=window.label,
        choices=[
            Choice(one.label, f"?{PARAMETER}={one.name}", one is window)
            for one in WINDOWS.values()
        ],
        cards=_cards(request, figures),
        pointers=[_pointer(request, one) for one in attention.concerns(figures.now)],
        lists=[
            shown
            for list_of in rooms.offered("overview_lists")
            if (shown := list_of(request, figures.now)) is not None
        ],
        history=history_charts.history(_period(figures)),
        types=overview_tables.types(request, figures),
        queues=overview_tables.queues(request, figures),
        workers=workers[: overview_tables.MOST_WORKERS],
        more_workers=max(0, len(workers) - overview_tables.MOST_WORKERS),
        operations=overview_tables.operations(request, figures),
    )


def _period(figures: Overview) -> Period:
    past = figures.past
    began = deploys(past.releases, past.start)
    return Period(figures.window, past.start, past.end, past.spans, events=began)


def _cards(request: HttpRequest, figures: Overview) -> list[Card]:
    line = figures.total
    depths = line.depths
    alive = [worker for worker in figures.now.present.workers if is_alive(worker)]
    slots = sum(worker.threads + worker.async_slots for worker in alive)
    minutes = (figures.past.end - figures.past.start).total_seconds() / 60
    window = str(figures.window.label)
    share = line.failed_share
    return [
        Card(
            _("Ready"),
            overview_tables.count(depths, "ready"),
            url=_list(request, "queuedjob", state="ready"),
        ),
        Card(
            _("Running"),
            numbers.number(depths.running),
            _("of %(count)s slots") % {"count": numbers.number(slots)},
            _list(request, "queuedjob", state="running"),
        ),
        Card(
            _("Retrying"),
            overview_tables.count(depths, "retrying"),
            url=_list(request, "queuedjob", state="retrying"),
        ),
        Card(
            _("Oldest ready"),
            age_text(depths.oldest),
            is_bad=(depths.oldest or 0) > conf.alert_wait,
        ),
        Card(_("Finished"), _rate(line.finished / minutes), _per_minute(window)),
        Card(
            _("Failed"),
            numbers.percent(share),
            window,
            _list(request, "archivedjob", status="failed"),
            is_bad=figures.now.failing.all is not None,
        ),
        _workers_card(request, figures, len(alive)),
    ]


def _workers_card(request: HttpRequest, figures: Overview, alive: int) -> Card:
    lapsed = sum(map(has_lapsed, figures.now.present.workers))
    note = ""
    if lapsed:
        note = ngettext("%(count)s lapsed", "%(count)s lapsed", lapsed)
        note %= {"count": numbers.number(lapsed)}
    return Card(
        _("Workers alive"),
        numbers.number(alive),
        note,
        _list(request, "worker"),
        is_bad=not alive or lapsed > 0,
    )


def _per_minute(window: str) -> str:
    return _("a minute, %(window)s") % {"window": window}


def _rate(number: float) -> str:
    return numbers.number(round(number)) if number >= 10 else numbers.decimal(number)


def _list(request: HttpRequest, model: str, **query: str) -> str:
    """A list, if the user may see it and it is on this site."""
    if not overview_tables.may_follow(request, model):
        return ""
    address = address_of(request, model)
    return f"{address}?{urlencode(query)}" if query else address


def _pointer(request: HttpRequest, concern: Concern) -> Pointer:
    others = ""
    if concern.others:
        others = ngettext(
            "and %(count)s more like it", "and %(count)s more like it", concern.others
        ) % {"count": numbers.number(concern.others)}
    return Pointer(
        text=display.visible(concern.message),
        url=_place(request, concern),
        is_bad=concern.is_bad,
        others=others,
    )


def _place(request: HttpRequest, concern: Concern) -> str:
    """Where to look at it."""
    if not concern.model:
        return ""
    if concern.key is None or not overview_tables.may_follow(request, concern.model):
        return _list(request, concern.model, **concern.query)
    return display.url_of(concern.model, concern.key)
