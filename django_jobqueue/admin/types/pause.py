"""Pause and resume job types and queues: who, why, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.display import names, visible
from django_jobqueue.admin.parts.form_fields import MomentField
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.models import Queue
from django_jobqueue.text import numbers, timezones

MOST_NAMED: Final = 50  # queues that are known
PAUSE: Final = ("paused", "paused_at", "paused_by", "paused_reason", "resume_at")


class PauseForm(ActionForm):
    """Why, and until when."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Shown with the pause."),
    )
    resume_at = MomentField(
        label=_("Resume at"),
        help_text=_("When the pause ends by itself. Empty: never."),
    )

    def clean_resume_at(self) -> Any:
        """A moment in the future."""
        at = self.cleaned_data["resume_at"]
        if at is not None and at <= timezones.now():
            raise ValidationError(_("This moment is in the past."))
        return at


class Pause(ConfirmedAction):
    """No job of these job types, or queues, starts."""

    name = "pause"
    menu_label: ClassVar[Any] = _("Pause selected %(verbose_name_plural)s")
    label = _("Pause")
    replaces = PAUSE
    form_class = PauseForm

    def __init__(self, *, queues: bool = False) -> None:
        self.queues = queues
        self.rights = _right(queues)

    def applies_to(self, row: Any) -> bool:
        """Only to one that is not paused."""
        return not catalogue.is_paused(row)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Ask which ones."""
        text = ngettext(
            "Pause %(names)s?", "Pause these %(count)s: %(names)s?", len(rows)
        )
        return Question(
            text % {"count": numbers.number(len(rows)), "names": _names(rows)},
            [gettext("No more jobs of it start; running jobs go on.")],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Pause them."""
        changed = operations.pause(
            [row.pk for row in rows],
            queues=self.queues,
            reason=cleaned["reason"],
            resume_at=cleaned["resume_at"],
            by=request.user.get_username(),
        )
        entry = gettext("Paused: %(reason)s") % {"reason": cleaned["reason"]}
        message = gettext("Paused: %(names)s.") % {"names": names(changed)}
        return Done(message, (), rows, entry)


class Resume(ConfirmedAction):
    """Let job types, or queues, be claimed again."""

    name = "resume"
    menu_label = _("Resume selected %(verbose_name_plural)s")
    label = _("Resume")
    replaces = PAUSE

    def __init__(self, *, queues: bool = False) -> None:
        self.queues = queues
        self.rights = _right(queues)

    def applies_to(self, row: Any) -> bool:
        """Only to one that is paused."""
        return catalogue.is_paused(row)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Names them, and why they were paused."""
        text = ngettext(
            "Resume %(names)s?", "Resume these %(count)s: %(names)s?", len(rows)
        )
        return Question(
            text % {"count": numbers.number(len(rows)), "names": _names(rows)},
            why_paused(rows),
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Resume them."""
        by = request.user.get_username()
        changed = operations.resume([row.pk for row in rows], queues=self.queues, by=by)
        message = gettext("Resumed: %(names)s.") % {"names": names(changed)}
        return Done(message, (), rows, gettext("Resumed."))


def why_paused(rows: Rows) -> list[str]:
    """By whom each was that is paused, and for what reason."""
    return [
        gettext("%(name)s was paused by %(by)s: %(reason)s")
        % {
            "name": visible(row.pk),
            "by": visible(row.paused_by),
            "reason": visible(row.paused_reason),
        }
        for row in rows
        if row.paused
    ]


class PauseByNameForm(PauseForm):
    """The name of the queue, which may not be in use yet."""

    name = forms.CharField(label=_("Queue"), max_length=100)
    field_order = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        queues = catalogue.queue_names(self.request)
        known = ", ".join(queues[:MOST_NAMED]) + (" …" if queues[MOST_NAMED:] else "")
        text = gettext("Known queues: %(names)s.") % {"names": known}
        self.fields["name"].help_text = text if known else ""

    def clean_name(self) -> str:
        """A name that a queue can have."""
        name: str = self.cleaned_data["name"]
        if queue_problem(name):
            raise ValidationError(
                _("A queue's name has no space, comma or control character.")
            )
        return name


class PauseQueueByName(Pause):
    """Pause a queue that nobody uses yet: the form asks for its name."""

    name = "pause-by-name"
    menu_label = None
    is_button = False
    takes_rows = False
    form_class = PauseByNameForm

    def __init__(self) -> None:
        super().__init__(queues=True)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The form asks for everything."""
        return Question(gettext("Pause a queue"))

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Pause the queue of this name."""
        return super().do(request, [open_queue(cleaned["name"])], cleaned)


def open_queue(name: str) -> Queue:
    """A queue without a row: it was never paused."""
    return Queue(name=name, paused=False, paused_by="", paused_reason="")


def _right(queues: bool) -> Sequence[str]:
    return ("pause_queue",) if queues else ("pause_jobtype",)


def _names(rows: Rows) -> str:
    return names(row.pk for row in rows)
