"""Limits by key: what holds for each, which keys wait and run, and overrides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import ceil
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.limits.limit_keys import sees_keys
from django_jobqueue.admin.limits.limit_override import OverrideLimit
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.domain.rates import Rate
from django_jobqueue.models import JobType, KeyLimit
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.limit_keys import (
    MOST_WAITING,
    KeyRow,
    LimitRow,
    keys_of,
    limits,
)
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import MASK


class KeyLimitAdmin(ActionAdmin):
    """Code declares limits; operators override them."""

    change_form_template = "admin/jobqueue/key_limit.html"
    page_actions: ClassVar[Sequence[Action]] = (OverrideLimit(),)
    ordering = ("name",)
    list_display = ("limit_name", "of_each_key", "overridden", "running", "job_types")
    list_display_links = ("limit_name",)
    search_fields = ("name",)
    search_help_text = _("A part of the name of a limit.")

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/machines.css"]}

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Job types and running jobs, read once for all."""
        by_name = {limit.name: limit for limit in limits(DjangoDatabase())}
        for row in rows:
            row.row_context = by_name.get(row.name) or _without_jobs(row)
        return rows

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        row = context["original"]
        db = DjangoDatabase()
        limit = next(iter(limits(db, row.name)), None) or _without_jobs(row)
        is_hidden = not sees_keys(request, row.name)
        keys = keys_of(db, limit)
        context["state"] = _state(limit)
        context["has_rates"] = any(limit.rate_of(key) for key in keys)
        context["has_next_starts"] = context["has_rates"] or limit.is_strict
        context["has_shares"] = any(key.share is not None for key in keys)
        context["summary"] = _summary(request, limit)
        context["keys"] = [
            _key_cells(limit, key, is_hidden=is_hidden)
            | {"url": "" if is_hidden else self._override_url(request, row, key)}
            for key in keys
        ]
        context["history"] = entries(KeyLimit, row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def _override_url(self, request: HttpRequest, row: KeyLimit, key: KeyRow) -> str:
        """Where this key is overridden; empty for users who may not."""
        action = self.page_actions[0]
        if not self.may_do(request, action, row):
            return ""
        return self.address_of(action, row, then=request.path, key=key.key)

    @column(description=_("name"))
    def limit_name(self, limit: KeyLimit) -> Any:
        """The name."""
        return display.breakable(limit.name)

    @column(description=_("of each key"))
    def of_each_key(self, limit: Any) -> Any:
        """The number that is in force."""
        number = limit.row_context.in_force
        return _held() if number == 0 else _limit_text(number)

    @column(description=_("overridden"))
    def overridden(self, limit: Any) -> Any:
        """The overrides of all keys and of single ones."""
        return _overridden(limit.row_context)

    @column(description=_("running"))
    def running(self, limit: Any) -> str:
        """The running jobs of all keys."""
        return numbers.number(limit.row_context.running)

    @column(description=_("job types"))
    def job_types(self, limit: Any) -> Any:
        """The job types that share it."""
        names = limit.row_context.job_types
        return (
            display.lines(map(display.breakable, names)) if names else display.NOTHING
        )


def _without_jobs(row: KeyLimit) -> LimitRow:
    """A limit that is gone, or one too many to read."""
    of_keys = (row.rate, row.rate_override, row.strict)
    return LimitRow(
        row.name, row.concurrency, row.concurrency_override, (), 0, 0, *of_keys
    )


def _key_cells(limit: LimitRow, key: KeyRow, *, is_hidden: bool) -> dict[str, Any]:
    """A row of the table of keys."""
    many = "+" if key.waiting >= MOST_WAITING else ""
    is_due = key.oldest is not None and key.oldest >= 0
    return {
        "key": MASK if is_hidden else display.visible(key.key) or display.NOTHING,
        "running": numbers.number(key.running),
        "limit": _held() if limit.of_key(key) == 0 else _limit_text(limit.of_key(key)),
        "override": _override_text(key.override),
        "rate": _rate_text(limit.rate_of(key)),
        "share": display.NOTHING if key.share is None else numbers.number(key.share),
        "next_start": _next_start(limit.wait_of(key)),
        "waiting": numbers.number(key.waiting) + many,
        "oldest": numbers.span(key.oldest or 0) if is_due else display.NOTHING,
    }


def _state(limit: LimitRow) -> Any:
    """The state: jobs may run or not, by the code or by an operator."""
    if limit.in_force == 0:
        return _held()
    if limit.override is not None:
        return display.pill("asked", gettext("overridden"))
    return display.pill("open", gettext("active"))


def _held() -> Any:
    return display.pill("paused", pgettext("limit key", "held"))


def _limit_text(limit: int | None) -> str:
    return "∞" if limit is None else numbers.number(limit)


def _rate_text(rate: Rate | None) -> str:
    return "∞" if rate is None else rate.text


def _next_start(wait: timedelta) -> Any:
    """When the rate permits the next start; a key that is held may wait for long."""
    if not wait:
        return display.NOTHING
    text = gettext("in %(span)s")
    return text % {"span": numbers.span(ceil(wait.total_seconds()))}


def _override_text(override: int | None) -> Any:
    if override is None:
        return display.NOTHING
    return _limit_text(None if override == NO_LIMIT else override)


def _overridden(limit: LimitRow) -> Any:
    parts = []
    if limit.override is not None:
        text = gettext("%(before)s → %(after)s")
        values = {
            "before": _limit_text(limit.declared),
            "after": _override_text(limit.override),
        }
        parts.append(text % values)
    if limit.rate_override is not None:
        text = gettext("%(before)s → %(after)s")
        values = {"before": limit.declared_rate or "∞", "after": _rate_text(limit.rate)}
        parts.append(text % values)
    if limit.overridden_keys:
        text = gettext("%(count)s of its keys")
        parts.append(text % {"count": numbers.number(limit.overridden_keys)})
    return display.lines(parts) if parts else display.NOTHING


def _summary(request: HttpRequest, limit: LimitRow) -> list[tuple[Any, Any]]:
    sees_types = may_view(request, JobType)
    types = [
        display.link("jobtype", name, display.breakable(name))
        if sees_types
        else display.breakable(name)
        for name in limit.job_types
    ]
    order = _("strict: a retry goes first") if limit.is_strict else _("as due")
    return [
        (_("Of each key"), _limit_text(limit.in_force)),
        (_("Rate of each key"), _rate_text(limit.rate)),
        (_("Order of each key"), order),
        (_("Overridden"), _overridden(limit)),
        (_("Running"), numbers.number(limit.running)),
        (_("Job types"), display.lines(types) if types else display.NOTHING),
    ]
