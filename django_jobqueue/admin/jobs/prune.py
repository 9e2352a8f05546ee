"""Prune selected archived jobs: they are deleted, with their failures."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import ConfirmedAction, Done, Question, Rows
from django_jobqueue.domain.states import BulkKind
from django_jobqueue.text import numbers


class PruneJobs(ConfirmedAction):
    """Archived jobs go before their time."""

    name = "prune"
    menu_label = _("Delete selected %(verbose_name_plural)s")
    label = _("Delete")
    rights = ("prune_archivedjob",)
    bulk_action = BulkKind.PRUNE
    danger = True

    def applies_to(self, row: Any) -> bool:
        """Only the list's menu: the page of the job would go, too."""
        return False

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many, and that they do not come back."""
        text = ngettext("Delete %(count)s job?", "Delete %(count)s jobs?", len(rows))
        return Question(
            text % {"count": numbers.number(len(rows))},
            warnings=[
                gettext(
                    "Their failures are deleted with them. Deleted jobs cannot be "
                    "restored."
                )
            ],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Prune them."""
        by = request.user.get_username()
        gone = set(operations.prune_jobs([row.pk for row in rows], by=by))
        text = ngettext(
            "%(count)s job was deleted.", "%(count)s jobs were deleted.", len(gone)
        )
        return Done.of(rows, gone, text, gettext("Deleted."))
