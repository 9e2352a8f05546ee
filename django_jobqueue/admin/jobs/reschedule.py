"""Give waiting jobs another time, another priority or another queue."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
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
from django_jobqueue.admin.parts.fields import PriorityField, QueueField
from django_jobqueue.admin.parts.moments import MomentField
from django_jobqueue.domain.states import BulkKind
from django_jobqueue.text import numbers


class RescheduleForm(ActionForm):
    """When, how urgently and where; what is left empty stays as it is."""

    run_after = MomentField(
        label=_("Run after"), help_text=_("Empty leaves the time as it is.")
    )
    priority = PriorityField(
        help_text=_("-100 to 100; greater is sooner. Empty leaves it as it is.")
    )
    queue = QueueField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        queue = self.fields["queue"]
        assert isinstance(queue, QueueField)
        names = catalogue.queue_names(self.request)
        queue.offer(names, _("the queue that each has"))

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
        said = super().clean() or {}
        if not self.errors and not _changes(said):
            raise ValidationError(_("Choose a time, a priority or a queue."))
        return said


class RescheduleJobs(WaitingAction):
    """Waiting jobs get another time, priority or queue."""

    name = "reschedule"
    menu_label = _("Reschedule selected %(verbose_name_plural)s")
    label = _("Reschedule")
    rights = ("reschedule_queuedjob",)
    bulk_kind = BulkKind.RESCHEDULE
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

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Change what was said."""
        changes = _changes(said)
        by = request.user.get_username()
        changed = set(operations.reschedule([row.pk for row in rows], by=by, **changes))
        text = ngettext(
            "%(count)s job was rescheduled.",
            "%(count)s jobs were rescheduled.",
            len(changed),
        )
        return Done.of(rows, changed, text, _in_words(changes))


def _changes(said: dict[str, Any]) -> dict[str, Any]:
    """The changes, as ``operations.reschedule`` takes them."""
    names = ("run_after", "priority", "queue")
    return {name: said[name] for name in names if said.get(name) not in (None, "")}


def _in_words(changes: dict[str, Any]) -> str:
    labels = {
        "run_after": gettext("run after"),
        "priority": gettext("priority"),
        "queue": gettext("queue"),
    }
    what = ", ".join(f"{labels[name]} {value}" for name, value in changes.items())
    return gettext("Rescheduled: %(what)s.") % {"what": what}
