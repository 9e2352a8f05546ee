"""Tokens of the HTTP API: what each allows, until when, and when it was used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Q
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.contrib.http.admin.token_actions import CREATE, RevokeTokens
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_rows import SOON
from django_jobqueue.text import timezones


class TokenStateFilter(ChoiceFilter):
    """Tokens that open something, and those that do not any more."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The three states."""
        return [
            ("valid", pgettext("token", "valid")),
            ("expired", pgettext("token", "expired")),
            ("revoked", pgettext("token", "revoked")),
        ]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The tokens in this state."""
        revoked = Q(revoked_at__isnull=False)
        expired = Q(expires_at__lte=timezones.now())
        if value == "revoked":
            return queryset.filter(revoked)
        if value == "expired":
            return queryset.exclude(revoked).filter(expired)
        if value == "valid":
            return queryset.exclude(revoked).exclude(expired)
        return queryset.none()


class TokenAdmin(ActionAdmin):
    """Operators make tokens and revoke them; programs use them."""

    change_form_template = "admin/jobqueue/summary_page.html"
    page_actions: ClassVar[Sequence[Action]] = (CREATE, RevokeTokens())
    ordering = ("-id",)
    list_display = ("token_name", "state", "may_do_what", "on", "expires", "last_used")
    list_display_links = ("token_name",)
    list_filter = (TokenStateFilter,)
    search_fields = ("name", "created_by")
    search_help_text = _("A part of the name of a token, or of its creator.")

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/machines.css"]}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer to make one to users who may."""
        may_create = self.may_do(request, CREATE)
        extra = {"create": self.address_of(CREATE) if may_create else ""}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        token = context["original"]
        context["state"] = state_of(token)
        context["summary"] = _summary(token)
        context["history_title"] = gettext("History")
        context["history"] = entries(Token, token.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("name"))
    def token_name(self, token: Token) -> Any:
        """The name, of the program that has it."""
        return display.breakable(token.name)

    @column(description=_("state"))
    def state(self, token: Token) -> Any:
        """Valid or revoked."""
        return state_of(token)

    @column(description=_("may"))
    def may_do_what(self, token: Token) -> str:
        """The scopes."""
        return _words(token.scopes) or display.NOTHING

    @column(description=_("job types and queues"))
    def on(self, token: Token) -> Any:
        """The patterns that bound it."""
        bounds = [_words(token.job_types), _words(token.queues)]
        if not any(bounds):
            return gettext("every")
        return display.lines(display.breakable(one) for one in bounds if one)

    @column(description=_("expires"))
    def expires(self, token: Token) -> Any:
        """From when on it opens nothing."""
        return _moment(token.expires_at)

    @column(description=_("last used"))
    def last_used(self, token: Token) -> Any:
        """To the hour."""
        return _moment(token.last_used_at)


def state_of(token: Token) -> Any:
    """Valid, about to expire, expired or revoked."""
    if token.revoked_at is not None:
        return display.pill("stopped", pgettext("token", "revoked"))
    now, end = timezones.now(), token.expires_at
    if end is not None and end <= now:
        return display.pill("lapsed", pgettext("token", "expired"))
    if end is not None and end <= now + SOON:
        return display.pill("asked", pgettext("token", "expires soon"))
    return display.pill("running", pgettext("token", "valid"))


def _summary(token: Token) -> list[tuple[Any, Any]]:
    rows = [
        (_("May"), _words(token.scopes) or display.NOTHING),
        (_("Job types"), _words(token.job_types) or gettext("every")),
        (_("Queues"), _words(token.queues) or gettext("every")),
        (_("Created"), display.full_moment(token.created_at)),
        (_("Created by"), display.visible(token.created_by) or display.NOTHING),
        (_("Expires"), _full_moment(token.expires_at)),
        (_("Last used"), _full_moment(token.last_used_at)),
    ]
    if token.revoked_at is not None:
        rows += [
            (_("Revoked"), display.full_moment(token.revoked_at)),
            (_("Revoked by"), display.visible(token.revoked_by) or display.NOTHING),
        ]
    return rows


def _words(values: Any) -> str:
    """A list of texts of JSON, which plain SQL may have made anything."""
    named = values if isinstance(values, list) else [values]
    return ", ".join(display.visible(str(value)) for value in named)


def _moment(moment: Any) -> Any:
    return display.NOTHING if moment is None else display.moment(moment)


def _full_moment(moment: Any) -> Any:
    return display.NOTHING if moment is None else display.full_moment(moment)
