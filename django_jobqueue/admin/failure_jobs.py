"""Bulk operations on the jobs of a failure group: drafted from its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import drafts
from django_jobqueue.selection import Selection, Table, Term
from django_jobqueue.states import ArchivedStatus, BulkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOperation:
    """What can be done with all jobs of a group; the draft's page asks before it."""

    name: str  # in the address
    label: Any
    kind: BulkKind
    table: Table
    only: tuple[Term, ...] = ()
    resolves: bool = False  # the group, at once
    danger: bool = False

    def selection(self, fingerprint: UUID) -> Selection:
        """The jobs of this group that it is about."""
        return Selection(self.table, (Term("group", fingerprint), *self.only))

    def may(self, request: HttpRequest) -> bool:
        """Whether the user may draft it."""
        return drafts.may_draft(request, self.kind)


FAILED: Final = Term("status", ArchivedStatus.FAILED.value)

OPERATIONS: Final = (
    GroupOperation(
        name="replay-jobs",
        label=_("Replay its failed jobs"),
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
        kind=BulkKind.CANCEL,
        table=Table.QUEUED,
        danger=True,
    ),
    GroupOperation(
        name="prune-jobs",
        label=_("Prune its archived jobs"),
        kind=BulkKind.PRUNE,
        table=Table.ARCHIVED,
        danger=True,
    ),
)
