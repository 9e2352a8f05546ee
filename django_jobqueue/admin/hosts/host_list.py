"""Hosts: each ``runworkers`` and embedded worker, and what operators ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import F, Q
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.hosts.host_actions import (
    DrainHosts,
    RestartHosts,
    ResumeHosts,
    StopHosts,
)
from django_jobqueue.admin.hosts.host_cells import plan_lines, queues_text, state_of
from django_jobqueue.admin.hosts.host_page import page_of, summary_of
from django_jobqueue.admin.hosts.scale_hosts import ScaleHosts
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.domain.states import HostState
from django_jobqueue.models import Host
from django_jobqueue.text import timezones


class HostStateFilter(ChoiceFilter):
    """Hosts by their state as a person sees it."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, and that of a host that should live and does not renew."""
        return [*HostState.choices, ("lapsed", pgettext("worker", "lapsed"))]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The hosts in this state."""
        lapsed = Q(stopped_at=None, lease_until__lt=timezones.now())
        if value == "lapsed":
            return queryset.filter(lapsed)
        return queryset.filter(~lapsed, state=value)


class HostAdmin(ActionAdmin):
    """Hosts register themselves; operators send them requests."""

    change_form_template = "admin/jobqueue/host.html"
    page_actions: ClassVar[Sequence[Action]] = (
        ScaleHosts(),
        RestartHosts(),
        DrainHosts(),
        ResumeHosts(),
        StopHosts(),
    )
    ordering = (F("stopped_at").desc(nulls_first=True), "name", "id")
    list_display = ("host_name", "doing", "plan", "serves", "since")
    list_display_links = ("host_name",)
    list_filter = (HostStateFilter,)
    search_fields = ("name", "release")
    search_help_text = _("A part of the name of a host, or of its release.")

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/machines.css"]}

    def rows_of(
        self, request: HttpRequest, keys: Sequence[Any], *, is_held: bool = False
    ) -> list[Any]:
        """Never locked: a host cannot renew its lease in a row that is."""
        return super().rows_of(request, keys)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        host = context["original"]
        context["state"] = state_of(host)
        context["summary"] = summary_of(host)
        context["page"] = page_of(request, host)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("host"))
    def host_name(self, host: Host) -> Any:
        """The machine, and the process of the supervisor."""
        return display.breakable(host.name)

    @column(description=_("state"))
    def doing(self, host: Host) -> Any:
        """The state, the requests, the last renewal, and why a request was refused."""
        renewed = gettext("renewed %(ago)s") % {"ago": display.ago(host.renewed_at)}
        lines = [state_of(host), display.short(renewed)]
        if host.error:
            lines.append(display.pill("failed", display.shown_text(host.error, 200)))
        return display.lines(lines)

    @column(description=_("processes"))
    def plan(self, host: Host) -> Any:
        """How many, and the slots of each."""
        lines = plan_lines(host)
        if host.embedded:
            lines.append(display.short(gettext("embedded")))
        return display.lines(lines)

    @column(description=_("queues, release"))
    def serves(self, host: Host) -> Any:
        """Where it claims from, and the version of the project that it runs."""
        release = display.visible(host.release)
        return display.lines(p for p in (queues_text(host.queues), release) if p)

    @column(description=_("started"))
    def since(self, host: Host) -> Any:
        """Since when it runs, or when it ended."""
        if host.stopped_at is None:
            return display.moment(host.started_at)
        return display.moment(host.stopped_at)
