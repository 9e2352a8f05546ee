"""The page of a started bulk operation: its progress and its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.bulk.bulk_draft import SKIPPED, shown_keys
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.admin.parts.selection_words import in_words
from django_jobqueue.admin.work.work_progress import WorkProgress
from django_jobqueue.domain.states import BulkKind, ReplayExpiry, SkipReplayed
from django_jobqueue.models import ArchivedJob, BulkOperation, FailureGroup, QueuedJob
from django_jobqueue.search.selection import Selection, SelectionError
from django_jobqueue.store.bulk.chunk import UNCONFIRMED
from django_jobqueue.store.bulk.results import outcome
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers

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
OVER: Final = ("succeeded", "failed", "cancelled", "expired")


@dataclass(slots=True)
class Became:
    """How many of the created jobs are this, and where to see them."""

    status: str
    label: str
    count: str
    url: str = ""


@dataclass(slots=True)
class Progress(WorkProgress):
    """The progress of an operation, and what came of it."""

    skipped: list[tuple[str, str]] = field(default_factory=list)
    became: list[Became] = field(default_factory=list)
    capped: bool = False
    unstarted: str = ""  # how many of the jobs that it created; empty: none


def progress_in_list(request: HttpRequest, operation: BulkOperation) -> Progress:
    """ "29,880 of 48,211 (62 %)"."""
    progress = Progress(
        operation, operation.seen, operation.total, operation.per_minute
    )
    progress.sentence = _done_text(progress)
    return progress


def _done_text(progress: Progress) -> str:
    """How many jobs it has handled, of how many."""
    operation, percent = progress.row, progress.percent
    seen = numbers.number(operation.seen)
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
    operation: BulkOperation,
    *,
    request: HttpRequest | None = None,
    groups: Iterable[FailureGroup] = (),
) -> str:
    """The selected jobs, in words; values of job data as this user may see them, none
    without a ``request``, names only of these failure groups."""
    names = {group.pk: display.shown_text(str(group)) for group in groups}
    try:
        chosen = Selection.from_json(operation.selection)
        sensitive = shown_keys(request, chosen) if request else None
        return in_words(chosen, sensitive=sensitive, groups=names)
    except SelectionError:
        return gettext("not readable")


def progress_of(request: HttpRequest, operation: BulkOperation) -> Progress:
    """All of the page."""
    progress = progress_in_list(request, operation)
    groups = _groups(request, operation)
    progress.facts = [
        *_facts(request, progress, groups),
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
    if progress.is_active:
        progress.warn(request)
    elif operation.skipped.get(UNCONFIRMED):
        progress.warning = gettext(
            "It stopped because more jobs match now than you confirmed. No other "
            "job was changed. Draft it again to see how many there are."
        )
    return progress


def _skipped_text(reason: str, count: int) -> str:
    """How many; of those that were not confirmed, only so many were looked at."""
    text = numbers.number(count)
    return f"{text}+" if reason == UNCONFIRMED else text


def _facts(
    request: HttpRequest, progress: Progress, groups: Iterable[FailureGroup]
) -> list[tuple[Any, Any]]:
    operation, rate = progress.row, progress.rate
    facts: list[tuple[Any, Any]] = [
        (_("Filter"), selection_text(operation, request=request, groups=groups)),
        (_("Frozen at"), display.full_moment(operation.cutoff)),
        (_("Changed"), numbers.number(operation.changed)),
        (_("By"), display.visible(operation.created_by) or display.NOTHING),
        (_("Reason"), linked(display.shown_text(operation.reason)) or display.NOTHING),
        (_("How"), how_text(operation) or display.NOTHING),
        (_("Started"), display.full_moment(operation.started_at)),
    ]
    if rate:
        text = gettext("%(number)s jobs per second")
        quick = rate >= 10
        number = numbers.number(round(rate)) if quick else numbers.decimal(rate)
        facts.append((_("Rate"), text % {"number": number}))
    return facts + progress.times()


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
    SkipReplayed.ANY: _("already replayed ones skipped"),
    SkipReplayed.SUCCEEDED: _("those whose replay succeeded skipped"),
    SkipReplayed.NONE: _("already replayed ones, too"),
}


def _add_outcome(request: HttpRequest, progress: Progress) -> None:
    id = progress.row.pk
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
