"""Actions that end jobs: cancel waiting and running ones, fail waiting ones now."""

from __future__ import annotations

from typing import Any

from django import forms
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
    left_out,
    with_reason,
)
from django_jobqueue.admin.jobs.waiting_action import (
    WaitingAction,
    archived_twin,
    running_ones,
)
from django_jobqueue.domain.states import BulkKind, QueuedStatus
from django_jobqueue.store.control.cancel import Cancelled
from django_jobqueue.text import numbers


class CancelForm(ActionForm):
    """Why."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Stored with the jobs."),
    )


class CancelJobs(ConfirmedAction):
    """Queued jobs are archived as cancelled; running ones are asked to stop."""

    name = "cancel"
    menu_label = _("Cancel selected %(verbose_name_plural)s")
    label = _("Cancel")
    rights = ("cancel_queuedjob",)
    bulk_action = BulkKind.CANCEL
    form_class = CancelForm
    danger = True

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many wait and how many run."""
        text = ngettext("Cancel %(count)s job?", "Cancel %(count)s jobs?", len(rows))
        button = ngettext("Cancel %(count)s job", "Cancel %(count)s jobs", len(rows))
        running = sum(row.status == QueuedStatus.RUNNING for row in rows)
        count = {"count": numbers.number(len(rows))}
        # Not beside a link of the same name that does nothing.
        question = Question(text % count, button=button % count, way_back=_("Back"))
        if len(rows) > running:
            text = ngettext(
                "%(count)s waits: it is archived as cancelled at once.",
                "%(count)s wait: they are archived as cancelled at once.",
                len(rows) - running,
            )
            question.facts.append(text % {"count": numbers.number(len(rows) - running)})
        if running:
            text = ngettext(
                "%(count)s runs: its handler is asked to stop; its effects stay.",
                "%(count)s run: their handlers are asked to stop; their effects stay.",
                running,
            )
            question.warnings.append(text % {"count": numbers.number(running)})
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Cancel, and say which was which."""
        ids = [row.pk for row in rows]
        by = request.user.get_username()
        cancelled = operations.cancel(ids, reason=cleaned["reason"], by=by)
        archived, asked = set(cancelled.archived), set(cancelled.asked)
        return Done(
            _what_happened(cancelled),
            left_out(len(rows), len(archived) + len(asked)),
            [
                archived_twin(row) if row.pk in archived else row
                for row in rows
                if row.pk in archived | asked
            ],
            with_reason(gettext("Cancelled."), cleaned["reason"]),
        )


def _what_happened(cancelled: Cancelled) -> str:
    parts = []
    if cancelled.archived:
        text = ngettext(
            "%(count)s job was cancelled.",
            "%(count)s jobs were cancelled.",
            len(cancelled.archived),
        )
        parts.append(text % {"count": numbers.number(len(cancelled.archived))})
    if cancelled.asked:
        text = ngettext(
            "%(count)s running job was asked to stop.",
            "%(count)s running jobs were asked to stop.",
            len(cancelled.asked),
        )
        parts.append(text % {"count": numbers.number(len(cancelled.asked))})
    return " ".join(parts)


class FailForm(ActionForm):
    """Why."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Stored with the jobs as their error."),
    )


class FailJobs(WaitingAction):
    """No further attempt: waiting jobs are archived as failed."""

    name = "fail"
    menu_label = _("Fail selected %(verbose_name_plural)s now")
    label = _("Fail now")
    rights = ("cancel_queuedjob",)
    form_class = FailForm
    danger = True

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many are running."""
        text = ngettext(
            "Fail %(count)s job now?", "Fail %(count)s jobs now?", len(rows)
        )
        return Question(
            text % {"count": numbers.number(len(rows))},
            [gettext("They are archived as failed, even with attempts left.")],
            running_ones(rows),
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Archive them."""
        by = request.user.get_username()
        ids = [row.pk for row in rows]
        ended = set(operations.fail(ids, reason=cleaned["reason"], by=by))
        text = ngettext(
            "%(count)s job was archived as failed.",
            "%(count)s jobs were archived as failed.",
            len(ended),
        )
        return Done(
            text % {"count": numbers.number(len(ended))} if ended else "",
            left_out(len(rows), len(ended)),
            [archived_twin(row) for row in rows if row.pk in ended],
            with_reason(gettext("Archived as failed."), cleaned["reason"]),
        )
