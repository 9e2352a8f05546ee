"""How to replay: when, where, how urgently, how often, and until when."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.form_fields import (
    MomentField,
    MomentsForm,
    PriorityField,
    QueueField,
)
from django_jobqueue.domain.states import ReplayExpiry

EXPIRIES: Final = [
    (ReplayExpiry.SAME, _("the same lifetime, from when it is due")),
    (ReplayExpiry.KEEP, _("the same time as before: an expired job expires again")),
    (ReplayExpiry.NEVER, _("never")),
    (ReplayExpiry.NEW, _("the time below")),
]


class ReplayOptions(MomentsForm):
    """The choices; a new job keeps what the old one had where nothing is said."""

    run_after = MomentField(label=_("Run at"), help_text=_("Empty: now."))
    queue = QueueField()
    priority = PriorityField(
        help_text=_("-100 to 100; higher runs first. Empty: unchanged.")
    )
    attempts = forms.ChoiceField(
        label=_("Attempts"),
        required=False,
        choices=[
            ("", _("unchanged")),
            ("1", _("one attempt, no retries")),
        ],
    )
    expires = forms.ChoiceField(
        label=_("Expiry"),
        required=False,
        initial=ReplayExpiry.SAME,
        widget=forms.RadioSelect,
        choices=EXPIRIES,
    )
    expires_at = MomentField(
        label=_("Expires at"), help_text=_("For “the time below”.")
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Kept in the history."),
    )

    def offer_queues(self, request: HttpRequest) -> None:
        """Fill the choice of queues."""
        queue = self.fields["queue"]
        assert isinstance(queue, QueueField)
        queue.offer(catalogue.queue_names(request), _("unchanged"))

    def offer_expiry(self, had_one: bool) -> None:
        """Without an old expiry there is nothing to keep, and nothing to repeat."""
        expires = self.fields["expires"]
        assert isinstance(expires, forms.ChoiceField)
        if not had_one:
            expires.choices = [
                choice
                for choice in EXPIRIES
                if choice[0] in (ReplayExpiry.NEVER, ReplayExpiry.NEW)
            ]
            expires.initial = ReplayExpiry.NEVER

    def clean(self) -> dict[str, Any]:
        """The choice of a new moment needs one."""
        cleaned = super().clean()
        expires_at = cleaned.get("expires_at")
        if (
            cleaned.get("expires") == ReplayExpiry.NEW
            and "expires_at" in cleaned
            and expires_at is None
        ):
            self.add_error("expires_at", gettext("Say when."))
        return cleaned


def options_of(cleaned: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``operations.replay`` for these choices."""
    expires = cleaned.get("expires") or ReplayExpiry.SAME
    if expires == ReplayExpiry.NEW:
        expires = cleaned["expires_at"]
    return {
        "run_after": cleaned.get("run_after"),
        "expires": expires,
        "queue": cleaned.get("queue") or None,
        "priority": cleaned.get("priority"),
        "max_attempts": int(cleaned["attempts"]) if cleaned.get("attempts") else None,
    }
