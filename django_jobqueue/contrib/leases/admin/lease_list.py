"""Leases by name: who holds each, since when and until when; and taking them away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Q
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import permalink
from django_jobqueue.admin.actions.action import (
    Action,
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.contrib.leases.take_away import take_away_leases
from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.text import numbers, timezones


class LeaseStateFilter(ChoiceFilter):
    """Leases that somebody holds, has not renewed, or may take."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The three states."""
        return [
            ("held", pgettext("lease", "held")),
            ("lapsed", pgettext("lease", "lapsed")),
            ("free", pgettext("lease", "free")),
        ]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The leases in this state."""
        taken, lapsed = (
            Q(token__isnull=False),
            Q(lease_until__lt=timezones.now()),
        )
        if value == "free":
            return queryset.exclude(taken)
        if value == "lapsed":
            return queryset.filter(taken & lapsed)
        return queryset.filter(taken & ~lapsed) if value == "held" else queryset.none()


class TakeAway(ConfirmedAction):
    """Let others have leases at once."""

    name = "take-away"
    menu_label = _("Take away selected %(verbose_name_plural)s")
    label = _("Take away")
    rights = ("jobqueue_leases.take_away_lease",)
    replaces = ("token",)
    danger = True

    def applies_to(self, row: Any) -> bool:
        """Only to a lease that somebody has."""
        return row.token is not None

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Names them, their holders, and the effect."""
        text = ngettext(
            "Take away the lease %(names)s?",
            "Take away these %(count)s leases: %(names)s?",
            len(rows),
        )
        question = Question(
            text
            % {
                "count": numbers.number(len(rows)),
                "names": display.names(row.name for row in rows),
            }
        )
        question.facts += [
            gettext("%(name)s is held by %(holder)s.")
            % {"name": display.visible(row.name), "holder": display.visible(row.holder)}
            for row in rows
            if row.token is not None
        ]
        question.facts.append(
            gettext(
                "Others may take it at once, with a greater fence. Its holder "
                "notices at its next renewal. An open transaction that needs the "
                "lease ends first."
            )
        )
        if any(row.name.startswith(STANDBY) for row in rows):
            question.warnings.append(
                gettext(
                    "The workers of the active host are stopped, and another host "
                    "becomes active."
                )
            )
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Take them away."""
        by = request.user.get_username()
        taken = take_away_leases([row.pk for row in rows], by=by)
        text = ngettext(
            "%(count)s lease was taken away.",
            "%(count)s leases were taken away.",
            len(taken),
        )
        return Done.of(rows, taken, text, gettext("Taken away."))


class LeaseAdmin(ActionAdmin):
    """Processes take leases; operators take them away."""

    change_form_template = "admin/jobqueue/summary_page.html"
    page_actions: ClassVar[Sequence[Action]] = (TakeAway(),)
    ordering = ("name",)
    list_display = (
        "lease_name",
        "state",
        "held_by",
        "since",
        "until",
        "fence_shown",
    )
    list_display_links = ("lease_name",)
    list_filter = (LeaseStateFilter,)
    search_fields = ("name", "holder")
    search_help_text = _("A part of the name of a lease, or of its holder.")

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/machines.css"]}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        lease = context["original"]
        context["state"] = state_of(lease)
        context["summary"] = _summary(lease)
        context["history_title"] = gettext("Taken away")
        context["history"] = entries(Lease, lease.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("name"))
    def lease_name(self, lease: Lease) -> Any:
        """The name."""
        return display.breakable(lease.name)

    @column(description=_("state"))
    def state(self, lease: Lease) -> Any:
        """Held or free."""
        return state_of(lease)

    @column(description=_("holder"))
    def held_by(self, lease: Lease) -> Any:
        """The process that holds it, and its host; of a free one, the last."""
        if not lease.holder:
            return display.NOTHING
        host = display.short(display.visible(lease.host))
        return display.lines([display.visible(lease.holder), host])

    @column(description=_("since"))
    def since(self, lease: Lease) -> Any:
        """When it was taken."""
        return display.moment(lease.taken_at)

    @column(description=_("until"))
    def until(self, lease: Lease) -> Any:
        """When it lapses unless it is renewed, or when it became free."""
        return display.moment(lease.lease_until)

    @column(description=_("fence"))
    def fence_shown(self, lease: Lease) -> str:
        """The number of its last taking."""
        return numbers.number(lease.fence)


def address_of_lease(request: HttpRequest, name: str) -> str:
    """The page of the lease of this name."""
    return permalink.address_of_object(request, Lease, name)


def state_of(lease: Lease) -> Any:
    """Held, lapsed (its holder does not renew it) or free."""
    if lease.token is None:
        return display.pill("stopped", pgettext("lease", "free"))
    if lease.lease_until < timezones.now():
        return display.pill("lapsed", pgettext("lease", "lapsed"))
    return display.pill("running", pgettext("lease", "held"))


def _summary(lease: Lease) -> list[tuple[Any, Any]]:
    is_free = lease.token is None
    return [
        (
            gettext("Last holder") if is_free else gettext("Holder"),
            display.visible(lease.holder) or display.NOTHING,
        ),
        (_("Host"), display.visible(lease.host) or display.NOTHING),
        (_("Since"), display.full_moment(lease.taken_at)),
        (
            gettext("Free since") if is_free else gettext("Until"),
            display.full_moment(lease.lease_until),
        ),
        (_("Renewed"), display.full_moment(lease.renewed_at)),
        (_("Fence"), numbers.number(lease.fence)),
        (_("Somebody waits"), gettext("yes") if _is_awaited(lease) else gettext("no")),
    ]


def _is_awaited(lease: Lease) -> bool:
    return lease.awaited and lease.token is not None
