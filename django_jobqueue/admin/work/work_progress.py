"""Work in chunks as the admin shows it: its state, how far it is, how long it may still
take, and why nothing happens. Of bulk operations, erasures and searches."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.workers.fleet import fleet
from django_jobqueue.domain.states import WorkState
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.work_rows import ACTIVE, JOB_TYPE
from django_jobqueue.text import numbers, timezones

LEAST_SECONDS: Final = 1.0  # of work that make a rate telling
QUIET: Final = 120.0  # seconds; the rate of one job a minute needs half of them
STYLES: Final = {
    WorkState.DRAFT: "later",
    WorkState.QUEUED: "ready",
    WorkState.DONE: "succeeded",
    WorkState.STOPPED: "cancelled",
}


@dataclass(slots=True)
class WorkProgress:
    """The progress of a row, on its page or in the list."""

    row: Any  # of models.ChunkedWork
    done: float
    total: float | None  # None: not known
    per_minute: int | None = None
    sentence: str = ""  # how much is done
    facts: list[tuple[Any, Any]] = field(default_factory=list)
    warning: str = ""
    nobody: bool = False  # no living worker would go on with it
    is_busy: bool = False  # somebody waits: the page is refreshed soon
    is_final: bool = False  # nothing on the page will change

    @property
    def state(self) -> Any:
        """As a pill."""
        state = self.row.state
        style = STYLES.get(WorkState(state), state)
        return display.pill(style, self.row.get_state_display())

    @property
    def error(self) -> str:
        """Why it failed."""
        return display.visible(self.row.error)

    @property
    def is_active(self) -> bool:
        """True if it goes on."""
        return self.row.state in ACTIVE

    @property
    def is_draft(self) -> bool:
        """True if it has not started."""
        return bool(self.row.state == WorkState.DRAFT)

    @property
    def percent(self) -> int | None:
        """The percentage that is done; None if the total is not known, or of a
        draft."""
        if self.is_draft:
            return None
        if self.row.state == WorkState.DONE:
            return 100
        percent = numbers.whole_percent(self.done, self.total)
        return None if percent is None else min(99, percent)

    @property
    def rate(self) -> float:
        """How much is done in a second since it began; 0 if that is too short to
        tell."""
        since, until = self.row.started_at, self.row.progress_at
        if since is None or until is None:
            return 0.0
        seconds = (until - since).total_seconds()
        return self.done / seconds if seconds >= LEAST_SECONDS else 0.0

    def times(self) -> list[tuple[Any, Any]]:
        """Facts: how long it may still take, or when it finished."""
        facts: list[tuple[Any, Any]] = []
        left = self._seconds_left()
        if left is not None:
            span = {"span": numbers.span(left)}
            facts.append((_("Time left"), gettext("about %(span)s") % span))
        if self.row.finished_at:
            facts.append((_("Finished"), display.full_moment(self.row.finished_at)))
        return facts

    def _seconds_left(self) -> float | None:
        if not self.is_active or not self.total:
            return None
        left = max(0, self.total - self.done)
        if self.per_minute:
            return left * 60 / self.per_minute
        return left / self.rate if self.rate else None

    def warn(self, request: HttpRequest) -> None:
        """Say why nothing happens, if so."""
        self.warning, self.nobody = trouble(request, self.row)

    def cell(self) -> Any:
        """In the list: the sentence, and a bar."""
        text = display.short(self.sentence)
        if self.percent is None:
            return text
        bar = '<progress class="jq-bar" max="100" value="{}" aria-hidden="true">'
        return display.lines([text, format_html(bar + "</progress>", self.percent)])


def trouble(request: HttpRequest, row: Any) -> tuple[str, bool]:
    """The reason why nothing happens, if so; and whether no worker could do it."""
    if row.job_id is None and row.state != WorkState.DRAFT:
        return _of_command(row)
    jobs = QueuedJob.objects.only("queue", "run_after")
    job = jobs.filter(pk=row.job_id).first() if row.job_id else None
    if job is None:
        text = gettext("The job that did the work is gone. Resume it.")
        if row.state == WorkState.DRAFT:
            text = gettext("The job that counted them is gone: count them here.")
        return text, True
    job_type = catalogue.job_type(request, JOB_TYPE)
    queue = catalogue.queues(request).get(job.queue)
    if catalogue.is_paused(job_type) or catalogue.is_paused(queue):
        names = display.names([JOB_TYPE, job.queue])
        text = gettext("Its job type or queue is paused, so it waits: %(names)s.")
        return text % {"names": names}, True
    living = fleet(request)
    if not set(living.serving(job.queue)) & set(living.knowing(JOB_TYPE)):
        name = {"queue": display.visible(job.queue)}
        text = gettext(
            "No living worker serves its queue, %(queue)s. Start one with "
            "manage.py runworkers, or run it here step by step."
        )
        return text % name, True
    return _waits_until(job.run_after), False


def _of_command(row: Any) -> tuple[str, bool]:
    """A command has no job that could be missed: its last progress tells."""
    if row.progress_at is None:
        text = gettext(
            "A command runs this operation and has made no progress yet. If the "
            "command is gone, resume the operation."
        )
        return text, False
    quiet = (timezones.now() - row.progress_at).total_seconds()
    if quiet < QUIET:
        return gettext("A command runs this operation."), False
    text = gettext(
        "A command ran this operation, but there has been no progress for %(span)s. If "
        "the command is gone, resume the operation."
    )
    return text % {"span": numbers.span(quiet)}, True


def _waits_until(moment: datetime) -> str:
    """Between the portions of work with a rate, or the passes of an erasure."""
    if moment <= timezones.now():
        return ""
    return gettext("It continues %(when)s.") % {"when": display.ago(moment)}
