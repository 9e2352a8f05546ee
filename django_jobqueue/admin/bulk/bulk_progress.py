"""The page of a started bulk operation: its progress and its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import VIEW_DATA, may, may_view
from django_jobqueue.admin.bulk.bulk_draft import SKIPPED
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.admin.parts.selection_words import in_words
from django_jobqueue.admin.workers.fleet import fleet
from django_jobqueue.domain.states import (
    BulkKind,
    ReplayExpiry,
    SkipReplayed,
    WorkState,
)
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    FailureGroup,
    QueuedJob,
)
from django_jobqueue.search.selection import Selection, SelectionError
from django_jobqueue.store.bulk.chunk import UNCONFIRMED
from django_jobqueue.store.bulk.results import outcome
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.work_rows import ACTIVE, JOB_TYPE
from django_jobqueue.text import numbers, timezones

BECAME: Final = {
    "succeeded": _("succeeded"),
    "failed": _("failed"),
    "cancelled": _("cancelled"),
    "expired": _("expired"),
    "running": _("running"),
    "retrying": _("retrying"),
    "waiting": _("not started"),
}
UNSTARTED: Final = "waiting"
LEAST_SECONDS: Final = 1.0  # of work that make a rate telling
QUIET: Final = 120.0  # seconds; the rate of one job a minute needs half of them
OVER: Final = ("succeeded", "failed", "cancelled", "expired")


@dataclass(slots=True)
class Became:
    """How many of the created jobs are this, and where to see them."""

    status: str
    label: str
    count: str
    url: str = ""


@dataclass(slots=True)
class Progress:
    """The progress on the page, and in a row of the list."""

    operation: BulkOperation
    facts: list[tuple[Any, Any]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    became: list[Became] = field(default_factory=list)
    capped: bool = False
    warning: str = ""
    nobody: bool = False  # no living worker would work it off
    unstarted: str = ""  # how many of the jobs that it created; empty: none

    @property
    def state(self) -> Any:
        """As a pill."""
        return pill_of(self.operation)

    @property
    def error(self) -> str:
        """Why it failed."""
        return display.visible(self.operation.error)

    @property
    def percent(self) -> int | None:
        """The percentage that is done; None if the total is not known."""
        return percent_of(self.operation)

    @property
    def sentence(self) -> str:
        """ "29,880 of 48,211 (62 %)"."""
        return done_text(self.operation)


def pill_of(operation: Any) -> Any:
    """The state."""
    styles = {
        WorkState.DRAFT: "later",
        WorkState.QUEUED: "ready",
        WorkState.DONE: "succeeded",
        WorkState.STOPPED: "cancelled",
    }
    style = styles.get(WorkState(operation.state), operation.state)
    return display.pill(style, operation.get_state_display())


def percent_of(operation: BulkOperation) -> int | None:
    """The percentage that is done; None if the total is not known."""
    if operation.state == WorkState.DONE:
        return 100
    percent = numbers.whole_percent(operation.seen, operation.total)
    return None if percent is None else min(99, percent)


def done_text(operation: BulkOperation) -> str:
    """How many jobs it has handled, of how many."""
    seen = numbers.number(operation.seen)
    percent = percent_of(operation)
    if operation.total is None:
        return seen
    values = {
        "seen": seen,
        "total": numbers.number(operation.total),
        "percent": percent,
    }
    if percent is None:
        return gettext("%(seen)s of %(total)s") % values
    return gettext("%(seen)s of %(total)s (%(percent)d %%)") % values


def selection_text(
    operation: BulkOperation, *, data: bool, groups: Iterable[FailureGroup] = ()
) -> str:
    """Which jobs, in words; values of job data only with ``data``, names only of these
    failure groups."""
    names = {group.pk: display.shown_text(str(group)) for group in groups}
    try:
        chosen = Selection.from_json(operation.selection)
        return in_words(chosen, data=data, groups=names)
    except SelectionError:
        return gettext("not readable")


def progress_of(request: HttpRequest, operation: BulkOperation) -> Progress:
    """All of the page."""
    progress = Progress(operation)
    groups = _groups(request, operation)
    progress.facts = [
        *_facts(operation, groups, data=may(request, VIEW_DATA)),
        *(
            (
                _("Failure group"),
                display.link("failuregroup", group.pk, display.shown_text(str(group))),
            )
            for group in groups
        ),
    ]
    progress.skipped = [
        (str(SKIPPED.get(reason, reason)), _skipped_text(reason, count))
        for reason, count in sorted(operation.skipped.items())
    ]
    if operation.kind == BulkKind.REPLAY and operation.changed:
        _add_outcome(request, progress)
    if operation.state in ACTIVE:
        progress.warning, progress.nobody = trouble(request, operation)
    elif operation.skipped.get(UNCONFIRMED):
        progress.warning = gettext(
            "It stopped, because more jobs match by now than were confirmed. No other "
            "job was changed. Draft it again to see how many there are."
        )
    return progress


def _skipped_text(reason: str, count: int) -> str:
    """How many; of those that were not confirmed, only so many were looked at."""
    text = numbers.number(count)
    return f"{text}+" if reason == UNCONFIRMED else text


def _facts(
    operation: BulkOperation, groups: Iterable[FailureGroup], *, data: bool
) -> list[tuple[Any, Any]]:
    facts: list[tuple[Any, Any]] = [
        (_("Filter"), selection_text(operation, data=data, groups=groups)),
        (_("Frozen at"), display.full_moment(operation.cutoff)),
        (_("Changed"), numbers.number(operation.changed)),
        (_("By"), display.visible(operation.created_by) or display.NOTHING),
        (_("Reason"), linked(display.shown_text(operation.reason)) or display.NOTHING),
        (_("How"), how_text(operation) or display.NOTHING),
        (_("Started"), display.full_moment(operation.started_at)),
    ]
    rate = _rate(operation)
    if rate:
        text = gettext("%(number)s jobs per second")
        quick = rate >= 10
        number = numbers.number(round(rate)) if quick else numbers.decimal(rate)
        text %= {"number": number}
        facts.append((_("Rate"), text))
    left = _seconds_left(operation)
    if left is not None:
        facts.append((_("Time left"), _about(left)))
    if operation.finished_at:
        facts.append((_("Finished"), display.full_moment(operation.finished_at)))
    return facts


def _groups(request: HttpRequest, operation: BulkOperation) -> list[FailureGroup]:
    """The failure group whose jobs it selects, for who may see that."""
    try:
        keys = Selection.from_json(operation.selection).values("group")
    except SelectionError:
        return []
    if not (keys and may_view(request, FailureGroup)):
        return []
    return list(FailureGroup.objects.filter(pk__in=keys))


def how_text(operation: BulkOperation) -> str:
    """The options, in words."""
    options = operations.bulk.options_of(operation.options)
    parts = []
    if operation.kind == BulkKind.REPLAY:
        parts.append(_EXPIRY[options.expires])
        parts.append(_SKIPS[options.skip_replayed])
        if options.skip_at_most_once:
            parts.append(_("at-most-once types skipped"))
    texts = [str(part) for part in parts]
    if options.run_after:
        moment = {"moment": display.exact(options.run_after)}
        texts.append(gettext("run after %(moment)s") % moment)
    if options.queue:
        name = {"name": display.visible(options.queue)}
        texts.append(gettext("queue %(name)s") % name)
    if options.priority is not None:
        texts.append(gettext("priority %(number)d") % {"number": options.priority})
    if operation.per_minute:
        text = ngettext(
            "at most %(count)s job per minute",
            "at most %(count)s jobs per minute",
            operation.per_minute,
        )
        texts.append(text % {"count": numbers.number(operation.per_minute)})
    return " · ".join(texts)


_EXPIRY: Final[dict[str, Any]] = {
    ReplayExpiry.SAME: _("same lifetime"),
    ReplayExpiry.KEEP: _("expiry kept"),
    ReplayExpiry.NEVER: _("no expiry"),
}
_SKIPS: Final[dict[str, Any]] = {
    SkipReplayed.ANY: _("those replayed already skipped"),
    SkipReplayed.SUCCEEDED: _("those whose replay succeeded skipped"),
    SkipReplayed.NONE: _("those replayed already, too"),
}


def _rate(operation: BulkOperation) -> float:
    """Jobs per second since it began; 0 if that is too short to tell."""
    since, until = operation.started_at, operation.progress_at
    if since is None or until is None:
        return 0.0
    seconds = (until - since).total_seconds()
    return operation.seen / seconds if seconds >= LEAST_SECONDS else 0.0


def _seconds_left(operation: BulkOperation) -> float | None:
    if operation.state not in ACTIVE or not operation.total:
        return None
    left = max(0, operation.total - operation.seen)
    if operation.per_minute:
        return left * 60 / operation.per_minute
    rate = _rate(operation)
    return left / rate if rate else None


def _about(seconds: float) -> str:
    return gettext("about %(span)s") % {"span": numbers.span(seconds)}


def _add_outcome(request: HttpRequest, progress: Progress) -> None:
    id = progress.operation.pk
    result = outcome(DjangoDatabase(), id)
    if result is None:  # perhaps some have not started
        progress.unstarted = gettext("some")
        return
    progress.capped = bool(result.capped)
    for status, label in BECAME.items():
        if status not in result.counts:
            continue
        count = numbers.number(result.counts[status])
        count = f"{count}+" if status in result.capped else count
        if status == UNSTARTED:
            progress.unstarted = count
        progress.became.append(
            Became(
                status=status if status != UNSTARTED else "later",
                label=str(label),
                count=count,
                url=_jobs_url(request, str(id), status),
            )
        )


def _jobs_url(request: HttpRequest, id: str, status: str) -> str:
    model = ArchivedJob if status in OVER else QueuedJob
    if not may_view(request, model):
        return ""
    terms = f"operation:{id}"
    if status in OVER:
        terms += f" status:{status}"
    list_url = reverse(f"admin:jobqueue_{model._meta.model_name}_changelist")
    return f"{list_url}?{urlencode({'q': terms})}"


def trouble(request: HttpRequest, operation: Any) -> tuple[str, bool]:
    """The reason why nothing happens, if so; and whether no worker could do it."""
    if operation.job_id is None and operation.state != WorkState.DRAFT:
        return _of_command(operation)
    jobs = QueuedJob.objects.only("queue", "run_after")
    job = jobs.filter(pk=operation.job_id).first() if operation.job_id else None
    if job is None:
        text = gettext("The job that ran this operation is gone. Resume the operation.")
        if operation.state == WorkState.DRAFT:
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


def _of_command(operation: Any) -> tuple[str, bool]:
    """A command has no job that could be missed: its last progress tells."""
    if operation.progress_at is None:
        text = gettext(
            "A command runs this operation and has made no progress yet. If the "
            "command is gone, resume the operation."
        )
        return text, False
    quiet = (timezones.now() - operation.progress_at).total_seconds()
    if quiet < QUIET:
        return gettext("A command runs this operation."), False
    text = gettext(
        "A command ran this operation, but there has been no progress for %(span)s. If "
        "the command is gone, resume the operation."
    )
    return text % {"span": numbers.span(quiet)}, True


def _waits_until(moment: datetime) -> str:
    """Between the portions of an operation with a rate."""
    if moment <= timezones.now():
        return ""
    return gettext("It goes on %(when)s.") % {"when": display.ago(moment)}
