"""Bulk operations: the list, drafts to start or discard, progress and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.drafts import may_draft
from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.admin.bulk.bulk_actions import (
    PAUSE,
    RESUME,
    RUN_STEP,
    STOP,
    UNDO,
)
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
from django_jobqueue.domain.states import WorkState
from django_jobqueue.models import BulkOperation


class BulkStateFilter(ChoiceFilter):
    """By state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every state."""
        return list(WorkState.choices)


class BulkOperationAdmin(ActionAdmin):
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
    key_in_path = "<uuid:object_id>"
    ordering = ("-created_at", "-id")
    list_display = ("what", "state_pill", "progress", "which", "by", "created")
    list_display_links = ("what",)
    list_filter = (BulkStateFilter,)

    class Media:
        css = {"all": ["django_jobqueue/bulk.css"]}  # noqa: RUF012

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Which jobs, in words that this user may read."""
        data = may(request, VIEW_DATA)
        for row in rows:
            row.words = selection_text(row, data=data)
        return rows

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

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        operation = context["original"]
        context["progress"] = operation.progress = progress_of(request, operation)
        context["subtitle"] = _name_of(operation)
        return super().render_change_form(request, context, *args, **kwargs)

    def not_posted(self, row: Any) -> HttpResponse:
        """A page of a draft that was refused has this address, and is loaded again."""
        return self.to(row)

    # The columns of the list.

    @column(description=_("operation"))
    def what(self, operation: BulkOperation) -> Any:
        """The kind, and the short id."""
        label = operation.get_kind_display()
        return display.lines([label, display.id_cell(operation.pk)])

    @column(description=_("state"))
    def state_pill(self, operation: BulkOperation) -> Any:
        """The state, as a pill."""
        return progress_in_list(operation).state

    @column(description=_("progress"))
    def progress(self, operation: BulkOperation) -> Any:
        """Jobs handled, of how many."""
        return progress_in_list(operation).cell()

    @column(description=_("filter"))
    def which(self, operation: Any) -> str:
        """The filter in words."""
        return str(operation.words)

    @column(description=_("by"))
    def by(self, operation: BulkOperation) -> str:
        """The user who drafted it."""
        return display.visible(operation.created_by) or display.NOTHING

    @column(description=_("created"))
    def created(self, operation: BulkOperation) -> Any:
        """When it was drafted."""
        return display.moment(operation.created_at)


def _name_of(operation: BulkOperation) -> str:
    """Kind and short id."""
    return f"{operation.get_kind_display()} {display.short_id(operation.pk)}"
