"""Let waiting jobs have more attempts, or fewer."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import MinValueValidator
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.jobs.waiting import WaitingAction, running_ones
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.conf import GREATEST
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.text import numbers


class AttemptsForm(ActionForm):
    """How many."""

    max_attempts = forms.IntegerField(
        label=_("Attempts"),
        min_value=1,
        max_value=GREATEST,
        help_text=_("In all, with those that were made."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        made = [row.attempts for row in self.rows if row.status == QueuedStatus.QUEUED]
        least, field = max(made, default=0) + 1, self.fields["max_attempts"]
        field.validators.append(MinValueValidator(least))
        field.widget.attrs["min"] = least


class AllowAttempts(WaitingAction):
    """Waiting jobs get a number of attempts of their own."""

    name = "allow_attempts"
    menu_label = _("Change the attempts of selected %(verbose_name_plural)s")
    label = _("Attempts")
    rights = ("reschedule_queuedjob",)
    form_class = AttemptsForm

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The effect, and which jobs are left alone."""
        text = ngettext(
            "How many attempts for %(count)s job?",
            "How many attempts for %(count)s jobs?",
            len(rows),
        )
        facts = [gettext("To run a job before its wait is over, let it run now.")]
        return Question(
            text % {"count": numbers.number(len(rows))},
            facts,
            [*_once_only(request, rows), *running_ones(rows)],
        )

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Change the number."""
        by, number = request.user.get_username(), said["max_attempts"]
        changed = set(
            operations.allow_attempts([row.pk for row in rows], number, by=by)
        )
        text = ngettext(
            "%(count)s job was changed.", "%(count)s jobs were changed.", len(changed)
        )
        entry = gettext("Attempts: %(number)s.") % {"number": numbers.number(number)}
        return Done.of(rows, changed, text, entry)


def _once_only(request: HttpRequest, rows: Rows) -> list[str]:
    count = len(catalogue.at_most_once(request, rows))
    if not count:
        return []
    text = ngettext(
        "%(count)s belongs to an at-most-once type, and has one attempt whatever is "
        "said here.",
        "%(count)s belong to at-most-once types, and have one attempt whatever is said "
        "here.",
        count,
    )
    return [text % {"count": numbers.number(count)}]
