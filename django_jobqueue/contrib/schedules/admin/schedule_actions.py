"""The buttons of schedules: pause, resume, run now, as the code says, delete."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import (
    ActionForm,
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.types.pause import why_paused
from django_jobqueue.contrib.schedules import operations
from django_jobqueue.contrib.schedules.admin.schedule_cells import is_overridden
from django_jobqueue.contrib.schedules.admin.schedule_forms import EDITED, OVERRIDDEN
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import DuplicateJob
from django_jobqueue.models import QueuedJob
from django_jobqueue.text import numbers

PAUSE: Final = ("paused", "paused_at", "paused_by", "paused_reason")


class PauseForm(ActionForm):
    reason = forms.CharField(
        label=_("Reason"), max_length=500, help_text=_("Shown with the pause.")
    )


class PauseSchedules(ConfirmedAction):
    name = "pause"
    menu_label = _("Pause selected %(verbose_name_plural)s")
    label = _("Pause")
    rights = ("jobqueue_schedules.pause_schedule",)
    replaces = PAUSE
    form_class: ClassVar[type[ActionForm]] = PauseForm

    def applies_to(self, row: Any) -> bool:
        return not row.paused

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        text = ngettext(
            "Pause %(names)s?", "Pause these %(count)s: %(names)s?", len(rows)
        )
        return Question(
            text % _named(rows),
            [
                gettext(
                    "It does not fire until it is resumed. Jobs that it enqueued go "
                    "on, and firings during the pause do not count as missed."
                )
            ],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        reason, by = cleaned["reason"], request.user.get_username()
        changed = operations.pause(_keys(rows), reason=reason, by=by)
        entry = gettext("Paused: %(reason)s") % {"reason": reason}
        text = gettext("Paused: %(names)s.") % {"names": display.names(_keys(rows))}
        return Done(text, (), [row for row in rows if row.pk in changed], entry)


class ResumeSchedules(ConfirmedAction):
    name = "resume"
    menu_label = _("Resume selected %(verbose_name_plural)s")
    label = _("Resume")
    rights = ("jobqueue_schedules.pause_schedule",)
    replaces = PAUSE

    def applies_to(self, row: Any) -> bool:
        return bool(row.paused)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        text = ngettext(
            "Resume %(names)s?", "Resume these %(count)s: %(names)s?", len(rows)
        )
        return Question(text % _named(rows), why_paused(rows))

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        changed = operations.resume(_keys(rows), by=request.user.get_username())
        text = gettext("Resumed: %(names)s.") % {"names": display.names(_keys(rows))}
        changed_rows = [row for row in rows if row.pk in changed]
        return Done(text, (), changed_rows, gettext("Resumed."))


class RunSchedules(ConfirmedAction):
    name = "run"
    menu_label = _("Run selected %(verbose_name_plural)s now")
    label = _("Run now")
    rights = ("jobqueue_schedules.run_schedule",)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        text = ngettext(
            "Run %(names)s now?", "Run these %(count)s now: %(names)s?", len(rows)
        )
        fact = gettext("A job is enqueued at once; the next firing stays as it is.")
        return Question(text % _named(rows), [fact])

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        by = request.user.get_username()
        jobs, warnings, changed = [], [], []
        for row in rows:
            try:
                jobs.append(operations.run_now(row.pk, by=by))
                changed.append(row)
            except DuplicateJob:
                text = gettext(
                    "Not run: %(name)s skips overlaps, and a job of it is not finished."
                )
                warnings.append(text % {"name": display.visible(row.pk)})
        sees = may_view(request, QueuedJob)
        named = format_html_join(
            ", ",
            "{}",
            (
                [
                    display.link("queuedjob", job.id, display.short_id(job.id))
                    if sees
                    else display.short_id(job.id)
                ]
                for job in jobs
            ),
        )
        message = format_html(gettext("Enqueued: {}."), named) if jobs else ""
        return Done(message, warnings, changed, gettext("Run now."))


class ResetSchedules(ConfirmedAction):
    name = "reset"
    menu_label = _("Clear overrides of selected %(verbose_name_plural)s")
    label = _("Reset to code")
    rights = ("jobqueue_schedules.change_schedule",)
    replaces = OVERRIDDEN

    def applies_to(self, row: Any) -> bool:
        return is_overridden(row)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        return Question(
            ngettext(
                "Clear overrides of %(names)s?",
                "Clear overrides of these %(count)s: %(names)s?",
                len(rows),
            )
            % _named(rows),
            [gettext("The code decides again.")],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        by = request.user.get_username()
        changed = [row for row in rows if is_overridden(row)]
        for row in changed:
            operations.override(row.pk, by=by, rule=None, time_zone=None, data=None)
        text = gettext("Reset to code: %(names)s.")
        text %= {"names": display.names(_keys(changed)) or display.NOTHING}
        return Done(text, (), changed, gettext("Reset to code."))


class DeleteSchedules(ConfirmedAction):
    name = "remove"
    menu_label = _("Delete selected %(verbose_name_plural)s")
    label = _("Delete")
    rights = ("jobqueue_schedules.delete_schedule",)
    replaces = (*EDITED, *OVERRIDDEN)
    danger = True

    def applies_to(self, row: Any) -> bool:
        is_declared = registry.get(row.job_type_id) is not None
        return row.origin == Origin.ADMIN or row.gone_at is not None or not is_declared

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        text = ngettext(
            "Delete %(names)s?", "Delete these %(count)s: %(names)s?", len(rows)
        )
        warnings = [gettext("Its history is deleted, too, for good. Its jobs stay.")]
        return Question(text % _named(rows), warnings=warnings)

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        by = request.user.get_username()
        for row in rows:
            operations.delete(row.pk, by=by)
        text = gettext("Deleted: %(names)s.") % {"names": display.names(_keys(rows))}
        return Done(text, (), rows, gettext("Deleted."))


def _keys(rows: Rows) -> list[str]:
    return [row.pk for row in rows]


def _named(rows: Rows) -> dict[str, str]:
    return {
        "count": numbers.number(len(rows)),
        "names": display.names(_keys(rows)),
    }
