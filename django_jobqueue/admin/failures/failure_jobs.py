"""Bulk operations on all jobs of failure groups: drafted from a group's page, or for
those that are selected in the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db.models.query import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import may
from django_jobqueue.admin.failures.failure_verbs import SeenForm
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.verbs import drafts
from django_jobqueue.admin.verbs.actions import OperatedAdmin
from django_jobqueue.domain.states import ArchivedStatus, BulkKind
from django_jobqueue.models import FailureGroup
from django_jobqueue.search.selection import Selection, Table, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOperation:
    """What can be done with all jobs of a group; the draft's page asks before it."""

    name: str  # in the address
    label: Any
    of_selected: Any = None  # in the menu of the list, if it is there
    kind: BulkKind
    table: Table
    only: tuple[Term, ...] = ()
    resolves: bool = False  # the group, when it starts
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


class GroupJobsAdmin(OperatedAdmin):
    """Groups whose jobs can be dealt with all at once."""

    def __init__(self, model: type[FailureGroup], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        operations = (action(one) for one in OPERATIONS if one.of_selected)
        self.actions = [*(self.actions or ()), *operations]

    def has_replay_many_permission(self, request: HttpRequest) -> bool:
        """Whether the user may replay all jobs of a group."""
        return drafts.may_draft(request, BulkKind.REPLAY)

    def has_cancel_many_permission(self, request: HttpRequest) -> bool:
        """Whether the user may cancel all jobs of a group."""
        return drafts.may_draft(request, BulkKind.CANCEL)

    def has_prune_many_permission(self, request: HttpRequest) -> bool:
        """Whether the user may prune all jobs of a group."""
        return drafts.may_draft(request, BulkKind.PRUNE)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether the user may decide about groups."""
        return may(request, "change_failuregroup")

    def get_urls(self) -> list[URLPattern]:
        """An address for each operation on the jobs of a group, before Django's."""
        own = [
            path(
                f"<path:object_id>/{operation.name}/",
                self.admin_site.admin_view(
                    partial(self.draft_operation, operation=operation)
                ),
                name=f"{self._prefix}_{operation.name}",
            )
            for operation in OPERATIONS
        ]
        return [*own, *super().get_urls()]

    def draft_operation(
        self, request: HttpRequest, object_id: str, *, operation: GroupOperation
    ) -> HttpResponse:
        """Draft it, and go to the page that asks whether to start it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.may_draft(request, operation):
            raise PermissionDenied
        group = self.get_object(request, unquote(object_id))
        if group is None:
            self.message_user(request, gettext("It is gone."), messages.WARNING)
            return HttpResponseRedirect(self._next(request))
        back = display.url_of("failuregroup", group.pk)
        options = {}
        if operation.resolves:
            if self._is_seen_again(request, group):
                return HttpResponseRedirect(back)
            options = {"resolves": group.pk}
        selection = operation.selection([group.pk])
        return drafts.draft(request, operation.kind, selection, back=back, **options)

    def draft_of_selected(
        self, request: HttpRequest, operation: GroupOperation, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """The same for what is selected in the list; nothing for too many groups."""
        keys = list(queryset.values_list("pk", flat=True)[: self.most_selected + 1])
        if len(keys) > self.most_selected:
            self._refuse(request)
            return None
        selection = operation.selection(keys)
        back = request.get_full_path()
        return drafts.draft(request, operation.kind, selection, back=back)

    def may_draft(self, request: HttpRequest, operation: GroupOperation) -> bool:
        """Whether the user may see groups, and do this with their jobs."""
        decides = not operation.resolves or self.has_decide_permission(request)
        return self.has_view_permission(request) and decides and operation.may(request)

    def operations(
        self, request: HttpRequest, group: FailureGroup
    ) -> list[dict[str, Any]]:
        """What this user may do with all jobs of this group."""
        return [
            {"operation": one, "url": self._operation_url(one, group)}
            for one in OPERATIONS
            if self.may_draft(request, one)
        ]

    def _is_seen_again(self, request: HttpRequest, group: FailureGroup) -> bool:
        """Whether it regressed since the page was made; says so."""
        form = SeenForm(request.POST, request=request, rows=[group])
        seen = form.cleaned_data["seen"] if form.is_valid() else None
        if seen is None or group.regressed_at is None or group.regressed_at <= seen:
            return False
        text = gettext("The failure group was seen again meanwhile, and stays open.")
        self.message_user(request, text, messages.WARNING)
        return True

    def _operation_url(self, operation: GroupOperation, group: FailureGroup) -> str:
        name = f"{self._namespace}:{self._prefix}_{operation.name}"
        address: str = reverse(name, args=[quote(group.pk)])
        return address
