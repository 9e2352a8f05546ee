"""Actions on waiting jobs: run now, reschedule, change the number of attempts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import ActionForm, Done, Question, Rows
from django_jobqueue.admin.jobs.waiting_action import WaitingAction, running_ones
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.form_fields import (
    MomentField,
    PriorityField,
    QueueField,
)
from django_jobqueue.conf import GREATEST
from django_jobqueue.domain.states import BulkKind, QueuedStatus
from django_jobqueue.text import numbers


class RunJobsNow(WaitingAction):
    """Waiting jobs become due at once."""

    name = "run_now"
    menu_label = _("Run selected %(verbose_name_plural)s now")
    label = _("Run now")
    rights = ("reschedule_queuedjob",)
    replaces = ("run_after",)
    bulk_action = BulkKind.RUN_NOW

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many are running already."""
        text = ngettext("Run %(count)s job now?", "Run %(count)s jobs now?", len(rows))
        return Question(
            text % {"count": numbers.number(len(rows))},
            [gettext("They become due at once; attempts and expiry stay as they are.")],
            running_ones(rows),
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Make them due."""
        by = request.user.get_username()
        changed = set(operations.run_now([row.pk for row in rows], by=by))
        text = ngettext(
            "%(count)s job is due now.", "%(count)s jobs are due now.", len(changed)
        )
        return Done.of(rows, changed, text, gettext("Made due now."))


class RescheduleForm(ActionForm):
    """When, how urgently and where; what is left empty stays as it is."""

    run_after = MomentField(label=_("Run after"), help_text=_("Empty: unchanged."))
    priority = PriorityField(
        help_text=_("-100 to 100; higher runs first. Empty: unchanged.")
    )
    queue = QueueField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        queue = self.fields["queue"]
        assert isinstance(queue, QueueField)
        names = catalogue.queue_names(self.request)
        queue.offer(names, _("unchanged"))

    def clean_run_after(self) -> Any:
        """A job that waits beyond its expiry would never run."""
        at = self.cleaned_data["run_after"]
        late = [
            row for row in self.rows if at and row.expires_at and row.expires_at <= at
        ]
        if late:
            text = ngettext(
                "%(count)s job expires before that.",
                "%(count)s jobs expire before that.",
                len(late),
            )
            raise ValidationError(text % {"count": numbers.number(len(late))})
        return at

    def clean(self) -> dict[str, Any]:
        """Something must be chosen."""
        cleaned = super().clean() or {}
        if not self.errors and not _changes(cleaned):
            raise ValidationError(_("Choose a time, a priority or a queue."))
        return cleaned


class RescheduleJobs(WaitingAction):
    """Waiting jobs get another time, priority or queue."""

    name = "reschedule"
    menu_label = _("Reschedule selected %(verbose_name_plural)s")
    label = _("Reschedule")
    rights = ("reschedule_queuedjob",)
    replaces = ("run_after", "priority", "queue")
    bulk_action = BulkKind.RESCHEDULE
    form_class = RescheduleForm

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many are running already."""
        text = ngettext(
            "Reschedule %(count)s job?", "Reschedule %(count)s jobs?", len(rows)
        )
        return Question(
            text % {"count": numbers.number(len(rows))},
            [gettext("Attempts and expiry stay as they are.")],
            running_ones(rows),
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Change what was said."""
        changes = _changes(cleaned)
        by = request.user.get_username()
        changed = set(operations.reschedule([row.pk for row in rows], by=by, **changes))
        text = ngettext(
            "%(count)s job was rescheduled.",
            "%(count)s jobs were rescheduled.",
            len(changed),
        )
        return Done.of(rows, changed, text, _in_words(changes))


def _changes(cleaned: dict[str, Any]) -> dict[str, Any]:
    """The changes, as ``operations.reschedule`` takes them."""
    names = ("run_after", "priority", "queue")
    return {
        name: cleaned[name] for name in names if cleaned.get(name) not in (None, "")
    }


def _in_words(changes: dict[str, Any]) -> str:
    labels = {
        "run_after": gettext("run after"),
        "priority": gettext("priority"),
        "queue": gettext("queue"),
    }
    what = ", ".join(f"{labels[name]} {value}" for name, value in changes.items())
    return gettext("Rescheduled: %(what)s.") % {"what": what}


class AttemptsForm(ActionForm):
    """How many."""

    max_attempts = forms.IntegerField(
        label=_("Attempts"),
        min_value=1,
        max_value=GREATEST,
        help_text=_("Total, including past attempts."),
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
    replaces = ("max_attempts",)
    form_class = AttemptsForm

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The effect, and which jobs are left alone."""
        text = ngettext(
            "How many attempts for %(count)s job?",
            "How many attempts for %(count)s jobs?",
            len(rows),
        )
        facts = [gettext("To run a job before its wait ends, use Run now.")]
        return Question(
            text % {"count": numbers.number(len(rows))},
            facts,
            [*_once_only(request, rows), *running_ones(rows)],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Change the number."""
        by, number = request.user.get_username(), cleaned["max_attempts"]
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
        "%(count)s belongs to an at-most-once type, and has one attempt whatever you "
        "enter here.",
        "%(count)s belong to at-most-once types, and have one attempt whatever you "
        "enter here.",
        count,
    )
    return [text % {"count": numbers.number(count)}]
