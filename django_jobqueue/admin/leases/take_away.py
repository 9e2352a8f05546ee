"""The action that takes leases from their holders."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.parts.display import names, visible
from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.text import numbers


class TakeAway(ConfirmedAction):
    """Let others have leases at once."""

    name = "take-away"
    menu_label = _("Take away selected %(verbose_name_plural)s")
    label = _("Take away")
    rights = ("take_away_lease",)
    replaces = ("token",)
    danger = True

    def applies_to(self, row: Any) -> bool:
        """Only to a lease that somebody has."""
        return row.token is not None

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Which ones, from whom, and the effect."""
        text = ngettext(
            "Take away the lease %(names)s?",
            "Take away these %(count)s leases: %(names)s?",
            len(rows),
        )
        question = Question(
            text
            % {
                "count": numbers.number(len(rows)),
                "names": names(row.name for row in rows),
            }
        )
        question.facts += [
            gettext("%(name)s is held by %(holder)s.")
            % {"name": visible(row.name), "holder": visible(row.holder)}
            for row in rows
            if row.token is not None
        ]
        question.facts.append(
            gettext(
                "Others may take it at once, with a greater fence. Its holder "
                "notices at its next renewal. An open transaction that needs the "
                "lease ends first."
            )
        )
        if any(row.name.startswith(STANDBY) for row in rows):
            question.warnings.append(
                gettext(
                    "The workers of the active host are stopped, and another host "
                    "becomes active."
                )
            )
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Take them away."""
        by = request.user.get_username()
        taken = operations.take_away_leases([row.pk for row in rows], by=by)
        text = ngettext(
            "%(count)s lease was taken away.",
            "%(count)s leases were taken away.",
            len(taken),
        )
        return Done.of(rows, taken, text, gettext("Taken away."))
