"""Actions on tokens: make one, which is shown once, and revoke some."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import (
    ActionForm,
    Button,
    ConfirmedAction,
    Done,
    MakeObject,
    Question,
    Rows,
)
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.parts.display import names
from django_jobqueue.admin.parts.form_fields import MomentField
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_operations import create_token, revoke_tokens
from django_jobqueue.contrib.http.token_scopes import (
    RIGHTS,
    TOKEN_NAME_LENGTH,
    Scope,
    patterns_of,
)
from django_jobqueue.text import numbers

SCOPES: Final = {
    Scope.ENQUEUE: _("enqueue jobs"),
    Scope.READ: _("read jobs, without their data"),
    Scope.READ_DATA: _("also read their data; secrets are masked"),
    Scope.OPERATE: _("cancel, replay, pause, like operators"),
    Scope.WORK: _("claim jobs and end them, as a remote worker"),
    Scope.TYPES: _("declare job types"),
}


class TokenForm(ActionForm):
    """For whom it is, and what it allows."""

    name = forms.CharField(
        label=_("Name"),
        max_length=TOKEN_NAME_LENGTH,
        help_text=_("The name of the program that gets it."),
    )
    scopes = forms.MultipleChoiceField(
        label=_("May"),
        choices=[(scope.value, text) for scope, text in SCOPES.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Only what you may do yourself."),
    )
    job_types = forms.CharField(
        label=_("Job types"),
        required=False,
        help_text=_(
            "Names or patterns, separated by commas: shop.*, mail. Empty: all."
        ),
    )
    queues = forms.CharField(
        label=_("Queues"),
        required=False,
        help_text=_("Names or patterns, separated by commas. Empty: all."),
    )
    expires_at = MomentField(label=_("Expires"), help_text=_("Empty: never."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes: Any = self.fields["scopes"]
        scopes.choices = [
            (scope.value, text)
            for scope, text in SCOPES.items()
            if self.request.user.has_perms([f"jobqueue.{r}" for r in RIGHTS[scope]])
        ]

    def clean_job_types(self) -> list[str]:
        """The patterns."""
        return patterns_of(self.cleaned_data["job_types"])

    def clean_queues(self) -> list[str]:
        """The patterns."""
        return patterns_of(self.cleaned_data["queues"])


class CreateToken(MakeObject):
    """Make a token, and show it on the answer to the POST, and nowhere else."""

    name = "create"
    label = _("Create token")
    button = _("Create")
    rights = ("jobqueue_http.manage_token",)
    form_class = TokenForm

    def ask(self, request: HttpRequest) -> Question:
        """Says what a token is for."""
        fact = gettext(
            "A program sends the token with each request to the HTTP API. It is shown "
            "once: only its hash is stored."
        )
        return Question(gettext("Create a token"), [fact])

    def make(
        self, page: ActionAdmin, request: HttpRequest, cleaned: dict[str, Any]
    ) -> HttpResponse:
        """Make it, and show it."""
        made = create_token(by=request.user.get_username(), **cleaned)
        row = Token(pk=made.row.id, name=made.row.name)
        page.log_addition(request, row, gettext("Created."))
        return page.show(
            request,
            "admin/jobqueue_http/new_token.html",
            title=gettext("The token %(name)s") % {"name": made.row.name},
            text=made.text,
            header="Authorization: Bearer …",
            button=Button(self.label, page.address_of(self)),
            page_url=page.url_of(row),
        )


CREATE: Final = CreateToken()


class RevokeTokens(ConfirmedAction):
    """Let tokens open nothing any more."""

    name = "revoke"
    menu_label = _("Revoke selected %(verbose_name_plural)s")
    label = _("Revoke")
    rights = ("jobqueue_http.manage_token",)
    danger = True

    def applies_to(self, row: Any) -> bool:
        """Only to a token that is not revoked."""
        return row.revoked_at is None

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Names them, and the effect."""
        text = ngettext(
            "Revoke the token %(names)s?",
            "Revoke these %(count)s tokens: %(names)s?",
            len(rows),
        )
        values = {
            "count": numbers.number(len(rows)),
            "names": names(row.name for row in rows),
        }
        fact = gettext(
            "The programs that send them are refused from the next request on. Jobs "
            "that they have enqueued or claimed stay. A revoked token cannot be "
            "restored."
        )
        return Question(text % values, [fact])

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Revoke them; of rows with one name, the one that is valid."""
        left = [row for row in rows if row.revoked_at is None]
        by = request.user.get_username()
        revoked = revoke_tokens([row.name for row in left], by=by)
        changed = [row.pk for row in left if row.name in revoked]
        text = ngettext(
            "%(count)s token was revoked.",
            "%(count)s tokens were revoked.",
            len(changed),
        )
        return Done.of(rows, changed, text, gettext("Revoked."))
