"""Bulk operations: the list, drafts to start or discard, progress and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.drafts import may_draft
from django_jobqueue.admin.bulk.bulk_actions import PAUSE, RESUME, RUN_STEP, STOP, UNDO
from django_jobqueue.admin.bulk.bulk_draft import Draft
from django_jobqueue.admin.bulk.bulk_progress import (
    progress_in_list,
    progress_of,
    selection_text,
)
from django_jobqueue.admin.bulk.bulk_start import START, draft_page
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.work.work_admin import WorkAdmin
from django_jobqueue.domain.states import WorkState
from django_jobqueue.models import BulkOperation


class BulkStateFilter(ChoiceFilter):
    """By state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every state."""
        return list(WorkState.choices)


class BulkOperationAdmin(WorkAdmin):
    """Drafts are made from the lists of jobs; here they are started and watched."""

    change_form_template = "admin/jobqueue/bulk_operation.html"
    page_actions: ClassVar[Sequence[Action]] = (
        START,
        PAUSE,
        RESUME,
        RUN_STEP,
        STOP,
        UNDO,
    )
    progress_in_list = staticmethod(progress_in_list)
    progress_of = staticmethod(progress_of)
    list_display = ("what", "state_pill", "progress", "which", "by", "created")
    list_filter = (BulkStateFilter,)

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """The selected jobs, in words that this user may read."""
        for row in rows:
            row.words = selection_text(row, request=request)
        return super().annotate(request, rows)

    def title_of(self, row: Any) -> str:
        """Kind and short id."""
        return f"{row.get_kind_display()} {display.short_id(row.pk)}"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """A draft asks; everything else is shown."""
        operation = self.get_object(request, object_id)
        if (
            operation is not None
            and operation.state == WorkState.DRAFT
            and request.method == "GET"
            and self.has_view_permission(request, operation)
            and may_draft(request, operation.kind)
        ):
            draft = Draft(operations.bulk.get(operation.pk))
            return draft_page(self, request, draft, draft.form(request))
        return super().change_view(request, object_id, form_url, extra_context)

    # The columns of the list.

    @column(description=_("operation"))
    def what(self, operation: BulkOperation) -> Any:
        """The kind, and the short id."""
        label = operation.get_kind_display()
        return display.lines([label, display.id_cell(operation.pk)])

    @column(description=_("filter"))
    def which(self, operation: Any) -> str:
        """The filter in words."""
        return str(operation.words)
