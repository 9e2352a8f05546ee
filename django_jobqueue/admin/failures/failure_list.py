"""The list of failure groups, in one of several orders, with figures of the rows of a
page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Q
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.failures import failure_states
from django_jobqueue.admin.failures.failure_order import ORDERS, SORT
from django_jobqueue.admin.failures.failure_states import ALL, LABELS
from django_jobqueue.admin.failures.failure_trend import Lately, lately
from django_jobqueue.admin.lists.active_filters import Tab
from django_jobqueue.admin.lists.change_list import KeyedChangeList
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.admin.parts import display
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats
from django_jobqueue.store.reading.failure_stats import (
    MOST_COUNTED,
    MOST_SAMPLED,
    Figures,
)
from django_jobqueue.text import numbers

MOST_NAMES: Final = 3  # job types and releases of a row


@dataclass(slots=True)
class RowContext:
    """The figures of a group, beside its row."""

    figures: Figures
    lately: Lately


class FailureGroupChangeList(KeyedChangeList):
    """The groups, with the number of each state, and the orders to choose from."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> QuerySet[Any]:
        """The groups in the order that the address asks for."""
        name = self.params.get(SORT, "")
        if name not in ORDERS:
            raise IncorrectLookupParameters(name)
        self.order = ORDERS[name]
        self.default_state = failure_states.default_state(request)
        return super().get_queryset(request, exclude_parameters)

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Without the order: it is no filter, and yet links repeat it."""
        parameters: dict[str, Any] = super().get_filters_params(params)
        parameters.pop(SORT, None)
        return parameters

    def key_of(self, request: HttpRequest) -> Key:
        """That of the order."""
        return self.order.key

    def in_order(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By its key."""
        return self.order.ranked(queryset).order_by(*self.key.order)

    @cached_property
    def orders(self) -> list[Tab]:
        """The orders, as links."""
        return [
            Tab(order.label, self.get_query_string({SORT: name or None}), here)
            for name, order in ORDERS.items()
            for here in [order is self.order]
        ]

    @cached_property
    def tabs(self) -> list[Tab]:
        """The states, each with the number of its groups."""
        counts = failure_states.counts()
        more = "+" if counts[ALL] > failure_states.MOST_COUNTED else ""
        current = self.params.get("state", self.default_state)
        return [
            Tab(
                format_html(
                    '{} <span class="jq-quiet">{}{}</span>',
                    label,
                    numbers.number(counts[name]),
                    more,
                ),
                self.get_query_string({"state": name}),
                name == current,
            )
            for name, label in LABELS.items()
        ]


def searched(queryset: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Groups with all of these words in their class, message or place; or the one
    with this fingerprint."""
    try:
        return queryset.filter(fingerprint=UUID(text.strip()))
    except ValueError:
        pass
    for word in text.split():
        queryset = queryset.filter(
            Q(template__icontains=word)
            | Q(frame__icontains=word)
            | Q(error_class__icontains=word)
        )
    return queryset


def annotate(rows: list[Any]) -> list[Any]:
    """Give the groups of a page their figures: three queries."""
    keys = [row.pk for row in rows]
    figures = failure_stats.figures(DjangoDatabase(), keys) if keys else {}
    trends = lately(keys) if keys else {}
    for row in rows:
        row.row_context = RowContext(figures[row.pk], trends[row.pk])
    return rows


def failure_counts(about: Lately) -> list[Any]:
    """How often it failed in a day and in an hour."""
    return [
        display.short(_("%(count)s in 24 h") % {"count": numbers.number(about.day)}),
        display.short(_("%(count)s in 1 h") % {"count": numbers.number(about.hour)}),
    ]


def job_counts(request: HttpRequest, fingerprint: UUID, figures: Figures) -> list[Any]:
    """How many jobs of each kind, as links to them."""
    archived = archived_cell(request, fingerprint, figures)
    waiting = waiting_cell(request, fingerprint, figures)
    return [
        display.short(format_html(_("{} archived"), archived)),
        display.short(format_html(_("{} waiting"), waiting)),
    ]


def archived_cell(request: HttpRequest, fingerprint: UUID, figures: Figures) -> Any:
    """How many archived jobs, as a link to them."""
    count = figures.archived
    more = count > MOST_COUNTED
    text = f"{numbers.number(MOST_COUNTED)}+" if more else numbers.number(count)
    if not count or not may_view(request, ArchivedJob):
        return text
    return _link("archivedjob", {"fingerprint": fingerprint}, text)


def waiting_cell(request: HttpRequest, fingerprint: UUID, figures: Figures) -> Any:
    """How many queued jobs failed so last, as a link to them; at least so many, where
    not all failures were looked at."""
    text = numbers.number(figures.waiting)
    if figures.waiting and figures.sampled >= MOST_SAMPLED:
        text = f"≥ {text}"
    if not figures.waiting or not may_view(request, QueuedJob):
        return text
    return _link("queuedjob", {"q": f"group:{fingerprint}"}, text)


def names_cell(figures: Figures) -> Any:
    """The job types and releases of its newest failures."""
    return display.lines(
        [_names(figures.job_types), failure_states.quiet(_names(figures.releases))]
    )


def _names(names: Sequence[str]) -> str:
    if not names:
        return display.NOTHING
    parts = ((display.breakable(name),) for name in names[:MOST_NAMES])
    shown = format_html_join(", ", "{}", parts)
    more = len(names) - MOST_NAMES
    if more <= 0:
        return shown
    others = ngettext("and %(count)s more", "and %(count)s more", more)
    return format_html("{} {}", shown, others % {"count": numbers.number(more)})


def _link(model: str, query: dict[str, Any], text: str) -> Any:
    address = reverse(f"admin:jobqueue_{model}_changelist")
    return format_html('<a href="{}?{}">{}</a>', address, urlencode(query), text)
