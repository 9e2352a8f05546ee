"""The page of a drafted bulk operation: what it would do, to how many, and what to know
before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.admin.bulk.bulk_forms import FORMS, TYPED_ABOVE, BulkForm
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.selection_words import in_words
from django_jobqueue.admin.verbs.verb import Question
from django_jobqueue.selection import Selection, Table
from django_jobqueue.states import ArchivedStatus, BulkKind, QueuedStatus
from django_jobqueue.store import outlook
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.operations import Operation
from django_jobqueue.store.outlook import Count, Outlook

UNBOUNDED: Final = "unbounded_bulkoperation"


@dataclass(slots=True)
class Draft:
    """A draft, and how many jobs it is about."""

    operation: Operation
    count: Count

    @property
    def is_unbounded(self) -> bool:
        """Whether it is about all jobs, or about more than half of many."""
        number, of_table = self.count.number, self.count.of_table
        everything = not self.operation.selection.terms
        return number > TYPED_ABOVE and (everything or number * 2 > of_table > 0)

    def form(self, request: HttpRequest) -> BulkForm:
        """What the operator says; filled in what a POST brought."""
        operation = self.operation
        return FORMS[operation.kind](
            request.POST if request.method == "POST" else None,
            initial={
                **asdict(operation.options),
                "reason": operation.reason,
                "per_minute": operation.per_minute,
            },
            request=request,
            count=self.count.number,
            exact=self.count.exact,
        )


def draft_of(operation: Operation) -> Draft:
    """Count its jobs, unless that was done when it was drafted."""
    db, selection = DjangoDatabase(), operation.selection
    if operation.total is None:
        return Draft(operation, outlook.count(db, selection, operation.cutoff))
    of_table = outlook.rows_of(db, selection.table)
    return Draft(operation, Count(operation.total, True, of_table))


def number_text(number: int) -> str:
    """A whole number."""
    return number_format(number, use_l10n=True, force_grouping=True)


def jobs_text(count: Count) -> str:
    """ "48,211 jobs", or "about 2,100,000 jobs"."""
    number = number_text(count.number)
    if count.exact:
        text = ngettext("%(number)s job", "%(number)s jobs", count.number)
    else:
        text = ngettext("about %(number)s job", "about %(number)s jobs", count.number)
    return text % {"number": number}


def question_of(request: HttpRequest, draft: Draft) -> tuple[Question, Outlook]:
    """What the page says before the form, and what is among the jobs."""
    operation = draft.operation
    seen = outlook.look(DjangoDatabase(), operation.selection, operation.cutoff)
    question = Question(_title(draft))
    question.facts.append(
        gettext("Which: %(filter)s.")
        % {"filter": in_words(operation.selection, data=may(request, VIEW_DATA))}
    )
    question.facts.append(_frozen(operation))
    if not seen.in_time:
        question.facts.append(gettext("It takes too long to look what is among them."))
    elif seen.looked_at:
        question.facts += _contents(operation.selection, seen)
    question.warnings += _warnings(request, draft, seen)
    return question, seen


def _title(draft: Draft) -> str:
    titles: dict[str, Callable[[], str]] = {
        BulkKind.REPLAY: lambda: gettext("Replay %(jobs)s?"),
        BulkKind.CANCEL: lambda: gettext("Cancel %(jobs)s?"),
        BulkKind.RUN_NOW: lambda: gettext("Run %(jobs)s now?"),
        BulkKind.RESCHEDULE: lambda: gettext("Reschedule %(jobs)s?"),
        BulkKind.PRUNE: lambda: gettext("Prune %(jobs)s?"),
    }
    return titles[draft.operation.kind]() % {"jobs": jobs_text(draft.count)}


def _frozen(operation: Operation) -> str:
    if operation.selection.table is Table.ARCHIVED:
        text = gettext("Frozen at %(moment)s: what ends later is not included.")
    else:
        text = gettext("Frozen at %(moment)s: what is enqueued later is not included.")
    return text % {"moment": display.exact(operation.cutoff)}


def _contents(selection: Selection, seen: Outlook) -> list[str]:
    labels: Any = ArchivedStatus if selection.table is Table.ARCHIVED else QueuedStatus
    parts = [
        f"{labels(status).label} {number_text(count)}"
        for status, count in seen.by_status.items()
    ]
    counts = {"counts": ", ".join(parts)}
    if seen.complete:
        found = [gettext("Status: %(counts)s.") % counts]
    else:
        text = gettext("Status of the first %(number)s: %(counts)s.")
        found = [text % {**counts, "number": number_text(seen.looked_at)}]
    if seen.oldest is not None and seen.newest is not None:
        ends = {
            "oldest": display.exact(seen.oldest),
            "newest": display.exact(seen.newest),
        }
        found.append(gettext("From %(oldest)s to %(newest)s.") % ends)
    return found


def _warnings(request: HttpRequest, draft: Draft, seen: Outlook) -> list[str]:
    kind = draft.operation.kind
    found: list[str] = []
    if kind == BulkKind.REPLAY:
        found += _about_replays(seen)
        found += _paused(request, seen)
    if kind == BulkKind.CANCEL and seen.by_status.get(QueuedStatus.RUNNING):
        text = gettext("What runs is asked to stop, and what it did stays.")
        found.append(text)
    if kind == BulkKind.PRUNE:
        found.append(
            gettext(
                "What is pruned is deleted, with its failures, and does not come back."
            )
        )
    if draft.is_unbounded:
        found.append(_unbounded(request))
    return found


def _about_replays(seen: Outlook) -> list[str]:
    texts = (
        (
            seen.replayed,
            ngettext(
                "%(count)s was replayed before.",
                "%(count)s were replayed before.",
                seen.replayed,
            ),
        ),
        (
            seen.at_most_once,
            ngettext(
                "%(count)s belongs to an at-most-once type: what it did before may "
                "have taken effect.",
                "%(count)s belong to at-most-once types: what they did before may have "
                "taken effect.",
                seen.at_most_once,
            ),
        ),
        (
            seen.expired,
            ngettext(
                "%(count)s is past its expiry.",
                "%(count)s are past their expiry.",
                seen.expired,
            ),
        ),
        (
            seen.without_type,
            ngettext(
                "%(count)s is left out, because its job type is gone.",
                "%(count)s are left out, because their job types are gone.",
                seen.without_type,
            ),
        ),
    )
    return [text % {"count": number_text(count)} for count, text in texts if count]


def _paused(request: HttpRequest, seen: Outlook) -> list[str]:
    types = catalogue.job_types(request)
    known = sorted(seen.job_types & set(types))
    paused = [name for name in known if catalogue.is_paused(types[name])]
    if not paused:
        return []
    text = gettext("Paused, so that the new jobs will wait: %(names)s.")
    return [text % {"names": display.names(paused)}]


def _unbounded(request: HttpRequest) -> str:
    if may(request, UNBOUNDED):
        return gettext("These are most of all jobs.")
    return gettext(
        "These are most of all jobs. You may not start that: narrow the filters, or "
        "ask somebody who may."
    )
