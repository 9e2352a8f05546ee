"""The unique key that a job holds, and freeing it."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ConfirmedAction,
    Done,
    Question,
    Rows,
    left_out,
)
from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may
from django_jobqueue.admin.parts import display
from django_jobqueue.models import UniqueWindow
from django_jobqueue.text import numbers, timezones


class FreeKey(ConfirmedAction):
    """The job lets go of its unique key, so that a duplicate can be enqueued."""

    name = "free_key"
    menu_label = _("Free unique keys of selected %(verbose_name_plural)s")
    label = _("Free key")
    rights = ("free_unique_key",)

    def applies_to(self, row: Any) -> bool:
        """Only to a job that holds a key."""
        return getattr(row, "unique_key", None) is not None or _window(row) is not None

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Confirm that a duplicate becomes possible."""
        text = ngettext(
            "Free the unique key of %(count)s job?",
            "Free the unique keys of %(count)s jobs?",
            len(rows),
        )
        question = Question(text % {"count": numbers.number(len(rows))})
        question.facts.append(
            gettext(
                "The job stays as it is. The next enqueue with the same key makes "
                "another job, which may run at the same time."
            )
        )
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Free the keys that are still held."""
        by = request.user.get_username()
        freed = set(operations.free_keys([row.pk for row in rows], by=by))
        text = ngettext(
            "%(count)s unique key was freed.",
            "%(count)s unique keys were freed.",
            len(freed),
        )
        return Done(
            text % {"count": numbers.number(len(freed))} if freed else "",
            left_out(len(rows), len(freed)),
            [row for row in rows if row.pk in freed],
            gettext("Unique key freed."),
        )


def held_key(request: HttpRequest, row: Any) -> list[tuple[Any, Any]]:
    """For the page of a job: its unique key, and until when no duplicate of the job is
    enqueued. Empty if it holds none. The key is a digest of data: whoever has it finds
    them by guesses, so that it is shown to those alone who may reveal them."""
    reveals = may(request, VIEW_DATA) and may(request, REVEAL_DATA)
    key = getattr(row, "unique_key", None)
    if key is not None:
        started = row.unique_until_started
        until = _("until it starts") if started else _("until it finishes")
        shown = [_copied(key), until] if reveals else [until]
        return [(_("Unique key"), display.lines(shown))]
    if (window := _window(row)) is None:
        return []
    held_until: Any = _("forever")
    if window.held_until is not None:
        held_until = display.full_moment(window.held_until)
    return [
        *([(_("Unique key"), _copied(window.key))] if reveals else []),
        (_("Key held until"), held_until),
    ]


def _copied(key: Any) -> Any:
    return display.whole_id(key, gettext("Copy the unique key"))


def _window(row: Any) -> UniqueWindow | None:
    """The window that the job holds open, looked up once."""
    if not hasattr(row, "open_window"):
        is_open = Q(held_until__isnull=True) | Q(held_until__gt=timezones.now())
        windows = UniqueWindow.objects.using(row._state.db).filter(job_id=row.pk)
        row.open_window = windows.filter(is_open).order_by("key").first()
    window: UniqueWindow | None = row.open_window
    return window
