"""Bulk operations on the jobs of a failure group: drafted from its page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import drafts
from django_jobqueue.selection import Selection, Table, Term
from django_jobqueue.states import ArchivedStatus, BulkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOperation:
    """What can be done with all jobs of a group; the draft's page asks before it."""

    name: str  # in the address
    label: Any
    of_selected: Any = None  # in the menu of the list, if it is there
    kind: BulkKind
    table: Table
    only: tuple[Term, ...] = ()
    resolves: bool = False  # the group, at once
    danger: bool = False

    def selection(self, fingerprints: Sequence[UUID]) -> Selection:
        """The jobs of these groups that it is about."""
        if len(fingerprints) == 1:
            groups = Term("group", fingerprints[0])
        else:
            groups = Term("groups", tuple(fingerprints))
        return Selection(self.table, (groups, *self.only))

    def may(self, request: HttpRequest) -> bool:
        """Whether the user may draft it."""
        return drafts.may_draft(request, self.kind)


FAILED: Final = Term("status", ArchivedStatus.FAILED.value)

OPERATIONS: Final = (
    GroupOperation(
        name="replay-jobs",
        label=_("Replay its failed jobs"),
        of_selected=_("Replay failed jobs of selected %(verbose_name_plural)s"),
        kind=BulkKind.REPLAY,
        table=Table.ARCHIVED,
        only=(FAILED,),
    ),
    GroupOperation(
        name="resolve-and-replay",
        label=_("Resolve, and replay its failed jobs"),
        kind=BulkKind.REPLAY,
        table=Table.ARCHIVED,
        only=(FAILED,),
        resolves=True,
    ),
    GroupOperation(
        name="cancel-jobs",
        label=_("Cancel its waiting jobs"),
        of_selected=_("Cancel waiting jobs of selected %(verbose_name_plural)s"),
        kind=BulkKind.CANCEL,
        table=Table.QUEUED,
        danger=True,
    ),
    GroupOperation(
        name="prune-jobs",
        label=_("Prune its archived jobs"),
        of_selected=_("Prune archived jobs of selected %(verbose_name_plural)s"),
        kind=BulkKind.PRUNE,
        table=Table.ARCHIVED,
        danger=True,
    ),
)


def action(operation: GroupOperation) -> Callable[..., HttpResponse | None]:
    """The operation as an action of Django's list."""

    @admin.action(
        permissions=[f"{operation.kind}_many"], description=operation.of_selected
    )
    def draft(
        model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        response: HttpResponse | None = model_admin.draft_of_selected(
            request, operation, queryset
        )
        return response

    draft.__name__ = operation.name.replace("-", "_")
    return draft
