"""Actions on workers: drain, resume, stop, restart, request a stack dump."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    Action,
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.domain.states import ALIVE, WITHOUT_SLOTS, WorkerState
from django_jobqueue.text import numbers


class AskWorkers(ConfirmedAction):
    """A request in the workers' rows, which each worker reads and obeys."""

    rights = ("control_worker",)
    facts: ClassVar[Any]

    def applies_to(self, row: Any) -> bool:
        """Only to a living worker."""
        return row.state in ALIVE

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The effect, and the number of jobs that run there."""
        running = sum(row.running for row in rows if row.state in ALIVE)
        others = sum(row.state in WITHOUT_SLOTS for row in rows)
        dead = sum(row.state not in ALIVE for row in rows) - others
        text = ngettext(
            "%(verb)s: %(count)s worker?", "%(verb)s: %(count)s workers?", len(rows)
        )
        question = Question(
            text % {"verb": self.label, "count": numbers.number(len(rows))}
        )
        question.facts.append(str(self.facts))
        text = ngettext(
            "%(count)s job is running there.",
            "%(count)s jobs are running there.",
            running,
        )
        question.facts.append(text % {"count": numbers.number(running)})
        if dead:
            text = ngettext(
                "%(count)s worker has already exited.",
                "%(count)s workers have already exited.",
                dead,
            )
            question.warnings.append(text % {"count": numbers.number(dead)})
        question.warnings += _no_workers(others)
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Ask them."""
        by = request.user.get_username()
        asked = set(operations.ask_workers([row.pk for row in rows], self.name, by=by))
        text = ngettext(
            "Request sent to %(count)s worker: %(verb)s.",
            "Request sent to %(count)s workers: %(verb)s.",
            len(asked),
        )
        named = {"count": numbers.number(len(asked)), "verb": self.label}
        entry = gettext("Asked: %(verb)s.") % {"verb": self.label}
        changed = [row for row in rows if row.pk in asked]
        left = _not_asked(rows, asked)
        return Done(text % named if asked else "", left, changed, entry)


class DrainWorkers(AskWorkers):
    """Take no new jobs."""

    name = "drain"
    menu_label = _("Drain selected %(verbose_name_plural)s")
    label = _("Drain")
    facts = _("It finishes its running jobs, and claims no more until it is resumed.")

    def applies_to(self, row: Any) -> bool:
        """Only to a worker that claims jobs."""
        return super().applies_to(row) and not is_drained(row)


class ResumeWorkers(AskWorkers):
    """Take jobs again."""

    name = "resume"
    menu_label = _("Resume selected %(verbose_name_plural)s")
    label = _("Resume")
    facts = _("It claims jobs again.")

    def applies_to(self, row: Any) -> bool:
        """Only to a worker that is draining."""
        return super().applies_to(row) and is_drained(row)


class StopWorkers(AskWorkers):
    """Finish the running jobs, and end."""

    name = "stop"
    menu_label = _("Stop selected %(verbose_name_plural)s")
    label = _("Stop")
    danger = True
    facts = _("It finishes its running jobs and ends, without a successor.")


class RestartWorkers(AskWorkers):
    """The same, with a successor."""

    name = "restart"
    menu_label = _("Restart selected %(verbose_name_plural)s")
    label = _("Restart")
    facts = _("It finishes its running jobs and ends; a successor starts at once.")


class AskWhere(ConfirmedAction):
    """Request a stack dump of their jobs and threads."""

    name = "where"
    menu_label = _("Show stacks of selected %(verbose_name_plural)s")
    label = _("Show stacks")
    is_button = False
    rights = ("control_worker",)

    def applies_to(self, row: Any) -> bool:
        """Only to a living worker."""
        return row.state in ALIVE

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The effect."""
        text = ngettext(
            "Ask %(count)s worker for its stacks?",
            "Ask %(count)s workers for their stacks?",
            len(rows),
        )
        facts = [
            gettext(
                "Within a second or two, or with its next heartbeat, the worker writes "
                "the stacks of its jobs and threads, without stopping them. No values "
                "of variables are written."
            )
        ]
        return Question(text % {"count": numbers.number(len(rows))}, facts)

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Ask them."""
        by = request.user.get_username()
        asked = set(operations.request_stack_dumps([row.pk for row in rows], by=by))
        text = ngettext(
            "Request sent to %(count)s worker; its page shows the stacks.",
            "Request sent to %(count)s workers; their pages show the stacks.",
            len(asked),
        )
        return Done(
            text % {"count": numbers.number(len(asked))} if asked else "",
            _not_asked(rows, asked),
            [row for row in rows if row.pk in asked],
            gettext("Asked for its stacks."),
        )


class ShowStack(Action):
    """The same for one worker. It only reads, so nothing is asked."""

    name = "stack"
    label = _("Show stack")
    rights = ("control_worker",)
    is_post_only = True
    is_tool = True

    def applies_to(self, row: Any) -> bool:
        """Only to a living worker."""
        return row.state in ALIVE

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Request it, and go back to the page, which shows it when it is there."""
        by = request.user.get_username()
        if operations.request_stack_dumps([row.pk], by=by):
            user: Any = request.user
            entry = gettext("Asked for its stacks.")
            LogEntry.objects.log_actions(user.pk, [row], CHANGE, entry)
        else:
            text, *_others = _not_asked([row], set())
            page.message_user(request, text, messages.WARNING)
        back = page.next_url(request) if "next" in request.GET else page.url_of(row)
        return HttpResponseRedirect(back)


def is_drained(worker: Any) -> bool:
    """True if it claims nothing, or is asked to."""
    return bool(worker.state == WorkerState.DRAINING or worker.desired == "drain")


def _not_asked(rows: Rows, asked: set[int]) -> list[str]:
    """Why some of these were not asked."""
    others = [row for row in rows if row.pk not in asked]
    count = sum(row.state not in WITHOUT_SLOTS for row in others)
    text = ngettext(
        "%(count)s worker had already ended.",
        "%(count)s workers had already ended.",
        count,
    )
    ended = [text % {"count": numbers.number(count)}] if count else []
    return ended + _no_workers(len(others) - count)


def _no_workers(count: int) -> list[str]:
    """So many rows are no workers."""
    if not count:
        return []
    text = ngettext(
        "%(count)s is an endpoint or a move, and is left alone.",
        "%(count)s are endpoints or moves, and are left alone.",
        count,
    )
    return [text % {"count": numbers.number(count)}]
