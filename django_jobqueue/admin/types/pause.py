"""Pause and resume job types and queues: who, why, and until when."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.display import names, visible
from django_jobqueue.admin.parts.moments import MomentField
from django_jobqueue.admin.verbs.verb import Done, Question, Rows, Verb, VerbForm
from django_jobqueue.text import numbers, timezones


class PauseForm(VerbForm):
    """Why, and until when."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Shown beside the pause, for whoever wonders."),
    )
    resume_at = MomentField(
        label=_("Resume at"),
        help_text=_("When the pause ends by itself; empty is never."),
    )

    def clean_resume_at(self) -> Any:
        """A pause that is over already would not be one."""
        at = self.cleaned_data["resume_at"]
        if at is not None and at <= timezones.now():
            raise ValidationError(_("This time is past."))
        return at


class Pause(Verb):
    """Stop the claiming of job types, or of queues."""

    name = "pause"
    label = _("Pause selected %(verbose_name_plural)s")
    button = _("Pause")
    permission = "pause"
    form_class = PauseForm
    queues: ClassVar[bool] = False

    def applies_to(self, row: Any) -> bool:
        """Only what is not paused."""
        return not catalogue.is_paused(row)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Which."""
        text = ngettext(
            "Pause %(names)s?", "Pause these %(count)s: %(names)s?", len(rows)
        )
        return Question(
            text % {"count": numbers.number(len(rows)), "names": _names(rows)},
            [gettext("No job of it starts any more; what runs goes on.")],
        )

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Pause them."""
        changed = operations.pause(
            [row.pk for row in rows],
            queues=self.queues,
            reason=said["reason"],
            resume_at=said["resume_at"],
            by=request.user.get_username(),
        )
        entry = gettext("Paused: %(reason)s") % {"reason": said["reason"]}
        message = gettext("Paused: %(names)s.") % {"names": names(changed)}
        return Done(message, (), rows, entry)


class Resume(Verb):
    """Let job types, or queues, be claimed again."""

    name = "resume"
    label = _("Resume selected %(verbose_name_plural)s")
    button = _("Resume")
    permission = "pause"
    queues: ClassVar[bool] = False

    def applies_to(self, row: Any) -> bool:
        """Only what is paused."""
        return catalogue.is_paused(row)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Which, and why they were paused."""
        text = ngettext(
            "Resume %(names)s?", "Resume these %(count)s: %(names)s?", len(rows)
        )
        facts = [
            gettext("%(name)s was paused by %(by)s: %(reason)s")
            % {
                "name": visible(row.pk),
                "by": visible(row.paused_by),
                "reason": visible(row.paused_reason),
            }
            for row in rows
            if row.paused
        ]
        return Question(
            text % {"count": numbers.number(len(rows)), "names": _names(rows)}, facts
        )

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Resume them."""
        by = request.user.get_username()
        changed = operations.resume([row.pk for row in rows], queues=self.queues, by=by)
        message = gettext("Resumed: %(names)s.") % {"names": names(changed)}
        return Done(message, (), rows, gettext("Resumed."))


class PauseQueue(Pause):
    """The same for queues."""

    queues = True


class ResumeQueue(Resume):
    """The same for queues."""

    queues = True


def _names(rows: Rows) -> str:
    return names(row.pk for row in rows)
