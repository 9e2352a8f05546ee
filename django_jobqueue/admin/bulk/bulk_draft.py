"""The page of a draft: its effects, the number of jobs, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Question
from django_jobqueue.admin.base import VIEW_DATA, may, may_view
from django_jobqueue.admin.bulk.bulk_forms import FORMS, BulkForm, paused_types
from django_jobqueue.admin.data_summaries import summaries
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.selection_words import in_words
from django_jobqueue.domain.states import ArchivedStatus, BulkKind, QueuedStatus
from django_jobqueue.models import ArchivedJob, FailureGroup, QueuedJob
from django_jobqueue.operations.bulk_rights import (
    UNBOUNDED,
    is_unbounded,
    rights_to_start,
)
from django_jobqueue.search.hidden_values import SensitiveKeys
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.bulk.draft_counts import Counted
from django_jobqueue.store.bulk.operation_rows import Operation, Options
from django_jobqueue.store.bulk.skips import planned
from django_jobqueue.text import numbers

SKIPPED: Final = {
    "replayed": _("replayed already"),
    "at_most_once": _("of an at-most-once type"),
    "type_gone": _("job type gone"),
    "erased": _("personal data erased"),
    "running": _("running already"),
    "expires": _("would expire before"),
    "changed": _("changed meanwhile"),
    "late": _("ended while this was drafted"),
    "refused": _("refused by the database; see the log"),
    "unconfirmed": _("not confirmed: they joined later"),
}


@dataclass
class Draft:
    """A draft, and what is counted of its jobs."""

    operation: Operation

    @property
    def counted(self) -> Counted:
        """The counts of its jobs, as far as they go."""
        return self.operation.counted

    @cached_property
    def plan(self) -> tuple[int, Counter[str]]:
        """How many jobs it would change, and how many it would skip for which reason,
        with what was chosen when it was drafted."""
        return self.plan_of(self.operation.options)

    def plan_of(self, options: Options) -> tuple[int, Counter[str]]:
        """The same with other choices."""
        return planned(self.operation.kind, self.counted, options)

    def may_start(self, request: HttpRequest) -> bool:
        """True if this user may start it now. Nobody may start it without any job, or
        prune jobs before they are counted."""
        if self.counted.over and not self.counted.number:
            return False
        if self.operation.kind == BulkKind.PRUNE and not self.counted.over:
            return False
        return all(may(request, right) for right in rights_to_start(self.operation))

    def form(self, request: HttpRequest) -> BulkForm:
        """The form, bound to the data of a POST."""
        operation = self.operation
        return FORMS[operation.kind](
            request.POST if request.method == "POST" else None,
            initial={
                **operation.options._asdict(),
                "reason": operation.reason,
                "per_minute": operation.per_minute,
            },
            request=request,
            draft=self,
        )


def jobs_text(number: int) -> str:
    """ "48,211 jobs"."""
    text = ngettext("%(number)s job", "%(number)s jobs", number)
    return text % {"number": numbers.number(number)}


def number_text(draft: Draft, number: int) -> str:
    """How many jobs are changed, as titles and buttons say it: "48,211 jobs"."""
    if draft.counted.over:
        return jobs_text(number)
    return gettext("jobs, not all counted yet")


Plan = tuple[int, Counter[str]]  # jobs that are changed; and skipped, by reason


def question_of(request: HttpRequest, draft: Draft, plan: Plan) -> Question:
    """The title, facts and warnings above the form, for the choices made in it."""
    operation = draft.operation
    question = Question(_title(draft, plan[0]))
    chosen = in_words(
        operation.selection,
        sensitive=shown_keys(request, operation.selection),
        groups={
            group.pk: display.shown_text(str(group))
            for group in groups_of(request, operation)
        },
    )
    question.facts.append(gettext("Filter: %(filter)s.") % {"filter": chosen})
    question.facts.append(_frozen(operation))
    question.facts += _counts(draft, plan)
    question.warnings += _warnings(request, draft)
    return question


def shown_keys(request: HttpRequest, selection: Selection) -> SensitiveKeys | None:
    """Tells which values of this selection are masked to a user who may see data; None
    for others."""
    if not may(request, VIEW_DATA):
        return None
    return lambda: catalogue.sensitive_of(request, selection)


def groups_of(request: HttpRequest, operation: Operation) -> list[FailureGroup]:
    """The failure group whose jobs it selects, for who may see that."""
    keys = operation.selection.values("group")
    if not (keys and may_view(request, FailureGroup)):
        return []
    return list(FailureGroup.objects.filter(pk__in=keys))


def examples_of(request: HttpRequest, draft: Draft) -> list[tuple[str, str, str]]:
    """Some of the jobs: address, id, and what their data say, for who may see them."""
    is_archived = draft.operation.selection.table is Table.ARCHIVED
    model: type[Model] = ArchivedJob if is_archived else QueuedJob
    if not may_view(request, model):
        return []
    ids = draft.counted.examples
    rows = model._default_manager.filter(pk__in=ids).only("pk", "job_type_id")
    about = summaries(request, draft.operation.selection.table, rows)
    name = str(model._meta.model_name)
    return [
        (display.url_of(name, id), display.short_id(id), about.get(id, ""))
        for id in ids
    ]


def skipped_text(skipped: Mapping[str, int]) -> str:
    """ "48 replayed already, 2 job type gone"."""
    parts = [
        f"{numbers.number(count)} {SKIPPED.get(reason, reason)}"
        for reason, count in sorted(skipped.items())
    ]
    return ", ".join(parts)


def _title(draft: Draft, number: int) -> str:
    titles: dict[str, Callable[[], str]] = {
        BulkKind.REPLAY: lambda: gettext("Replay %(jobs)s?"),
        BulkKind.CANCEL: lambda: gettext("Cancel %(jobs)s?"),
        BulkKind.RUN_NOW: lambda: gettext("Run %(jobs)s now?"),
        BulkKind.RESCHEDULE: lambda: gettext("Reschedule %(jobs)s?"),
        BulkKind.PRUNE: lambda: gettext("Delete %(jobs)s?"),
    }
    text = titles[draft.operation.kind]()
    return text % {"jobs": number_text(draft, number)}


def _frozen(operation: Operation) -> str:
    if operation.selection.table is Table.ARCHIVED:
        text = gettext("Frozen at %(moment)s: jobs that finish later are excluded.")
    else:
        text = gettext("Frozen at %(moment)s: jobs enqueued later are excluded.")
    return text % {"moment": display.exact(operation.cutoff)}


def _counts(draft: Draft, plan: Plan) -> list[str]:
    """The number of jobs, their statuses and times, and how far they are counted."""
    counted = draft.counted
    texts = [] if counted.over else [_so_far(counted)]
    if counted.over:
        texts.append(_planned(draft.operation.kind, *plan))
    if counted.number:
        texts.append(_statuses(draft.operation.selection, counted))
    if counted.oldest is not None and counted.newest is not None:
        ends = {
            "oldest": display.exact(counted.oldest),
            "newest": display.exact(counted.newest),
        }
        texts.append(gettext("From %(oldest)s to %(newest)s.") % ends)
    return texts


def _so_far(counted: Counted) -> str:
    text = gettext(
        "Counting: %(jobs)s so far, among %(rows)s examined. "
        "The figures below are of these."
    )
    rows = numbers.number(counted.examined)
    return text % {"jobs": jobs_text(counted.number), "rows": rows}


_PLANS: Final[dict[BulkKind, Callable[[int], str]]] = {
    BulkKind.REPLAY: lambda n: ngettext(
        "%(number)s will run again", "%(number)s will run again", n
    ),
    BulkKind.CANCEL: lambda n: ngettext(
        "%(number)s will be cancelled", "%(number)s will be cancelled", n
    ),
    BulkKind.RUN_NOW: lambda n: ngettext(
        "%(number)s will be due now", "%(number)s will be due now", n
    ),
    BulkKind.RESCHEDULE: lambda n: ngettext(
        "%(number)s will be rescheduled", "%(number)s will be rescheduled", n
    ),
    BulkKind.PRUNE: lambda n: ngettext(
        "%(number)s will be deleted", "%(number)s will be deleted", n
    ),
}


def _planned(bulk_action: str, changes: int, skipped: Counter[str]) -> str:
    """ "18,034 will run again, 50 are skipped: 48 replayed already …"."""
    text = _PLANS[BulkKind(bulk_action)](changes)
    changed = text % {"number": numbers.number(changes)}
    total = skipped.total()
    if not total:
        return f"{changed}."
    left = ngettext(
        "%(number)s is skipped: %(reasons)s.",
        "%(number)s are skipped: %(reasons)s.",
        total,
    )
    left %= {"number": numbers.number(total), "reasons": skipped_text(skipped)}
    return f"{changed}, {left}"


def _statuses(selection: Selection, counted: Counted) -> str:
    labels: Any = ArchivedStatus if selection.table is Table.ARCHIVED else QueuedStatus
    parts = [
        f"{numbers.number(count)} {labels(status).label}"
        for status, count in counted.by_status().items()
    ]
    return f"{', '.join(parts)}."


def _warnings(request: HttpRequest, draft: Draft) -> list[str]:
    bulk_action, counted = draft.operation.kind, draft.counted
    texts: list[str] = []
    if bulk_action == BulkKind.REPLAY:
        texts += _about_replays(counted)
        texts += _paused(request, counted)
    if bulk_action == BulkKind.CANCEL and counted.having(QueuedStatus.RUNNING):
        text = gettext("Running jobs are asked to stop; their effects stay.")
        texts.append(text)
    if bulk_action == BulkKind.PRUNE:
        texts.append(
            gettext(
                "Their failures are deleted with them. Deleted jobs cannot be restored."
            )
        )
    texts += _resolves(request, draft)
    if counted.over and is_unbounded(draft.operation):
        texts.append(_unbounded(request))
    return texts


_ABOUT_REPLAYS: Final[dict[str, Callable[[int], str]]] = {
    "replayed": lambda n: ngettext(
        "%(count)s was replayed before.", "%(count)s were replayed before.", n
    ),
    "at_most_once": lambda n: ngettext(
        "%(count)s belongs to an at-most-once type: its first run may have taken "
        "effect.",
        "%(count)s belong to at-most-once types: their first runs may have taken "
        "effect.",
        n,
    ),
    "expired": lambda n: ngettext(
        "%(count)s is past its expiry.", "%(count)s are past their expiry.", n
    ),
    "type_gone": lambda n: ngettext(
        "%(count)s is skipped: its job type is gone.",
        "%(count)s are skipped: their job types are gone.",
        n,
    ),
}


def _about_replays(counted: Counted) -> list[str]:
    counts = {trait: counted.having(trait) for trait in _ABOUT_REPLAYS}
    return [
        _ABOUT_REPLAYS[trait](count) % {"count": numbers.number(count)}
        for trait, count in counts.items()
        if count
    ]


def _paused(request: HttpRequest, counted: Counted) -> list[str]:
    paused = paused_types(request, counted)
    if not paused:
        return []
    text = gettext("Paused, so that the new jobs will wait: %(names)s.")
    return [text % {"names": display.names(paused)}]


def _resolves(request: HttpRequest, draft: Draft) -> list[str]:
    """That a failure group is resolved by the start, and by nothing before."""
    key = draft.operation.options.resolves
    if key is None:
        return []
    group = FailureGroup.objects.filter(pk=key).first()
    shown = may_view(request, FailureGroup) and group is not None
    name = display.shown_text(str(group)) if shown else display.short_id(key)
    text = gettext("When this starts, the failure group is resolved: %(group)s.")
    return [text % {"group": name}]


def _unbounded(request: HttpRequest) -> str:
    if may(request, UNBOUNDED):
        return gettext("These are most of all jobs.")
    return gettext(
        "These are most of all jobs, which you may not start: narrow the filters, or "
        "ask somebody who may."
    )
