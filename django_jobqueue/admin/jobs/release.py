"""Release running jobs whose worker is gone."""

from __future__ import annotations

from collections import Counter
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
from django_jobqueue.admin.jobs.waiting_action import archived_twin
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.domain.states import ALIVE, QueuedStatus, WorkerState
from django_jobqueue.models import Worker
from django_jobqueue.text import numbers, timezones


class ReleaseJobs(ConfirmedAction):
    """Jobs of a lost worker are queued again, or archived, at once."""

    name = "release"
    menu_label = _("Release selected %(verbose_name_plural)s from lost workers")
    label = _("Release")
    rights = ("release_queuedjob",)
    danger = True

    def applies_to(self, row: Any) -> bool:
        """Only to a running job."""
        return bool(row.status == QueuedStatus.RUNNING)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The jobs that can be released, the effect, and those that cannot."""
        lost = _lost(rows)
        text = ngettext("Release %(count)s job?", "Release %(count)s jobs?", len(rows))
        question = Question(text % {"count": numbers.number(len(rows))})
        if lost:
            question.facts.append(
                gettext(
                    "Its worker is presumed dead. The job waits again, and this "
                    "counts as a crash, which spends no attempt. If the worker is "
                    "alive after all, it cannot write anything about the job."
                )
            )
        question.warnings += [*_once_only(request, lost), *_held(len(rows) - len(lost))]
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Release the jobs that no living worker holds."""
        by = request.user.get_username()
        lost = {row.pk for row in _lost(rows)}
        taken = operations.release([row.pk for row in rows], by=by)
        status = {one.id: one.status for one in taken}
        return Done(
            _what_happened(Counter(status.values())),
            [
                *_held(sum(row.pk not in lost | status.keys() for row in rows)),
                *left_out(len(lost), len(lost & status.keys())),
            ],
            [
                row if status[row.pk] == QueuedStatus.QUEUED else archived_twin(row)
                for row in rows
                if row.pk in status
            ],
            gettext("Released from a lost worker."),
        )


def _lost(rows: Rows) -> list[Any]:
    """The jobs that no living worker holds."""
    running = [row for row in rows if row.status == QueuedStatus.RUNNING]
    living = set(
        Worker.objects.filter(
            Q(state__in=(*ALIVE, WorkerState.MOVING), lease_until__gte=timezones.now()),
            pk__in={row.worker_id for row in running},
        ).values_list("pk", flat=True)
    )
    return [row for row in running if row.worker_id not in living]


def _once_only(request: HttpRequest, rows: Rows) -> list[str]:
    count = len(catalogue.at_most_once(request, rows))
    if not count:
        return []
    text = ngettext(
        "%(count)s belongs to an at-most-once type: it is archived as failed, because "
        "its progress is unknown.",
        "%(count)s belong to at-most-once types: they are archived as failed, because "
        "their progress is unknown.",
        count,
    )
    return [text % {"count": numbers.number(count)}]


def _held(count: int) -> list[str]:
    if not count:
        return []
    text = ngettext(
        "%(count)s is left alone: it does not run, or its worker is alive. Cancel it "
        "instead, to ask its handler to stop.",
        "%(count)s are left alone: they do not run, or their workers are alive. "
        "Cancel them instead, to ask their handlers to stop.",
        count,
    )
    return [text % {"count": numbers.number(count)}]


def _what_happened(counts: Counter[str]) -> str:
    waiting = counts.pop(QueuedStatus.QUEUED, 0)
    archived = counts.total()
    parts = []
    if waiting:
        text = ngettext(
            "%(count)s job waits again.", "%(count)s jobs wait again.", waiting
        )
        parts.append(text % {"count": numbers.number(waiting)})
    if archived:
        text = ngettext(
            "%(count)s job was archived.", "%(count)s jobs were archived.", archived
        )
        parts.append(text % {"count": numbers.number(archived)})
    return " ".join(parts)
