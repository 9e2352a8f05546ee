"""Archive waiting jobs as failed, with a reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    Done,
    Question,
    Rows,
    left_out,
    with_reason,
)
from django_jobqueue.admin.jobs.waiting import (
    WaitingAction,
    archived_twin,
    running_ones,
)
from django_jobqueue.text import numbers


class FailForm(ActionForm):
    """Why."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Kept with the jobs, as what they failed with."),
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
            [gettext("They are archived as failed, whatever attempts are left.")],
            running_ones(rows),
        )

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Archive them."""
        by = request.user.get_username()
        ids = [row.pk for row in rows]
        ended = set(operations.fail(ids, reason=said["reason"], by=by))
        text = ngettext(
            "%(count)s job was archived as failed.",
            "%(count)s jobs were archived as failed.",
            len(ended),
        )
        return Done(
            text % {"count": numbers.number(len(ended))} if ended else "",
            left_out(len(rows), len(ended)),
            [archived_twin(row) for row in rows if row.pk in ended],
            with_reason(gettext("Archived as failed."), said["reason"]),
        )
