"""Let selected jobs run now."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Done, Question, Rows
from django_jobqueue.admin.jobs.waiting import WaitingAction, running_ones
from django_jobqueue.domain.states import BulkKind
from django_jobqueue.text import numbers


class RunJobsNow(WaitingAction):
    """Waiting jobs become due at once."""

    name = "run_now"
    menu_label = _("Run selected %(verbose_name_plural)s now")
    label = _("Run now")
    rights = ("reschedule_queuedjob",)
    bulk_kind = BulkKind.RUN_NOW

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many are running already."""
        text = ngettext("Run %(count)s job now?", "Run %(count)s jobs now?", len(rows))
        return Question(
            text % {"count": numbers.number(len(rows))},
            [gettext("They become due at once; attempts and expiry stay as they are.")],
            running_ones(rows),
        )

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Make them due."""
        by = request.user.get_username()
        changed = set(operations.run_now([row.pk for row in rows], by=by))
        text = ngettext(
            "%(count)s job is due now.", "%(count)s jobs are due now.", len(changed)
        )
        return Done.of(rows, changed, text, gettext("Made due now."))
