"""Bulk operations: drafts to be started or discarded, progress, and what came of it."""

from __future__ import annotations

from typing import Any

from django import VERSION
from django.contrib import messages
from django.contrib.admin import register
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.admin.bulk.bulk_draft import Draft, number_text, question_of
from django_jobqueue.admin.bulk.bulk_forms import BulkForm
from django_jobqueue.admin.bulk.bulk_progress import (
    done_text,
    percent_of,
    pill_of,
    progress_of,
    selection_text,
    trouble,
)
from django_jobqueue.admin.bulk.bulk_steering import SteeredAdmin
from django_jobqueue.admin.failures import failure_states
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.columns import column
from django_jobqueue.admin.verbs.drafts import may_draft
from django_jobqueue.domain.states import BulkKind, BulkState, GroupState
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import BulkOperation, FailureGroup
from django_jobqueue.search.selection import Table


class BulkStateFilter(ChoiceFilter):
    """By how far they are."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every state."""
        return list(BulkState.choices)


@register(BulkOperation)
class BulkOperationAdmin(SteeredAdmin):
    """Drafts are made from the lists of jobs; here they are started and watched."""

    change_form_template = "admin/jobqueue/bulk_operation.html"
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
        found = self.get_object(request, object_id)
        if (
            found is not None
            and found.state == BulkState.DRAFT
            and request.method == "GET"
            and self.has_view_permission(request, found)
            and may_draft(request, found.kind)
        ):
            draft = Draft(operations.bulk.get(found.pk))
            return self._draft_page(request, draft, draft.form(request))
        return super().change_view(request, object_id, form_url, extra_context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        operation = context["original"]
        context["progress"] = progress = progress_of(request, operation)
        context["controls"] = self.controls(request, operation, progress)
        context["subtitle"] = _name_of(operation)
        return super().render_change_form(request, context, *args, **kwargs)

    # A draft.

    def _draft_page(
        self, request: HttpRequest, draft: Draft, form: BulkForm
    ) -> HttpResponse:
        question = question_of(request, draft, form.plan)
        if not draft.counted.over:
            warning, _nobody = trouble(request, draft.operation)
            question.warnings += [warning] if warning else []
        archived = draft.operation.selection.table is Table.ARCHIVED
        model = "archivedjob" if archived else "queuedjob"
        id = draft.operation.id
        context = {
            **self.admin_site.each_context(request),
            "title": question.text,
            "opts": self.opts,
            "flat_crumbs": VERSION < (6, 1),
            "media": self.media + form.media,
            "operation": draft.operation,
            "question": question,
            "form": form,
            "is_counted": draft.counted.over,
            "may_start": draft.may_start(request),
            "verb": {
                "button": _start_label(draft, form.number),
                "danger": draft.operation.kind in (BulkKind.CANCEL, BulkKind.PRUNE),
            },
            "action": self.address_of(id, "start"),
            "count_here": self.address_of(id, "step"),
            "discard": self.address_of(id, "stop"),
            "examples": [
                (display.url_of(model, job), display.short_id(job))
                for job in draft.counted.examples
                if may(request, f"view_{model}")
            ],
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/jobqueue/bulk_draft.html", context)

    def start(self, request: HttpRequest, found: BulkOperation) -> HttpResponse:
        """Start it, if the form is right; else ask again."""
        if found.state != BulkState.DRAFT:
            return self._too_late(request, found)
        draft = Draft(operations.bulk.get(found.pk))
        if not draft.may_start(request):
            raise PermissionDenied
        form = draft.form(request)
        if not form.is_valid():
            return self._draft_page(request, draft, form)
        try:
            started = operations.bulk.start(
                found.pk,
                reason=form.cleaned_data["reason"],
                per_minute=form.rate(),
                by=request.user.get_username(),
                **form.chosen(),
            )
        except JobQueueError as error:
            form.add_error(None, str(error))
            return self._draft_page(request, draft, form)
        if not started:
            return self._too_late(request, found)
        self._say_of_group(request, draft)
        said = gettext("Started: %(kind)s, %(jobs)s. Which: %(filter)s. %(reason)s") % {
            "kind": found.get_kind_display(),
            "jobs": number_text(draft, form.number),
            "filter": selection_text(found, data=False),
            "reason": form.cleaned_data["reason"],
        }
        self.log_change(request, found, said.strip())
        return self.back(found.pk)

    def _say_of_group(self, request: HttpRequest, draft: Draft) -> None:
        """Write down that the start resolved a failure group, or say why not."""
        key = draft.operation.options.resolves
        group = FailureGroup.objects.filter(pk=key).first() if key else None
        if group is None:
            return
        if failure_states.state_now(group) == GroupState.RESOLVED:
            self.log_change(request, group, gettext("Resolved."))
            return
        text = gettext("The failure group was seen again meanwhile, and stays open.")
        self.message_user(request, text, messages.WARNING)

    def _too_late(self, request: HttpRequest, found: BulkOperation) -> HttpResponse:
        text = gettext("This was started or discarded already. Nothing was done twice.")
        self.message_user(request, text, messages.WARNING)
        return self.back(found.pk)

    # The columns of the list.

    @column(description=_("operation"))
    def what(self, operation: BulkOperation) -> Any:
        """What is done, and the id in short."""
        kind = operation.get_kind_display()
        return display.lines([kind, display.id_cell(operation.pk)])

    @column(description=_("state"))
    def state_pill(self, operation: BulkOperation) -> Any:
        """How far it is."""
        return pill_of(operation)

    @column(description=_("progress"))
    def progress(self, operation: BulkOperation) -> Any:
        """Jobs handled, of how many."""
        percent = percent_of(operation)
        text = display.short(done_text(operation))
        if percent is None or operation.state == BulkState.DRAFT:
            return text
        bar = '<progress class="jq-bar" max="100" value="{}" aria-hidden="true">'
        return display.lines([text, format_html(bar + "</progress>", percent)])

    @column(description=_("which jobs"))
    def which(self, operation: Any) -> str:
        """The filter in words."""
        return str(operation.words)

    @column(description=_("by"))
    def by(self, operation: BulkOperation) -> str:
        """Who drafted it."""
        return display.visible(operation.created_by) or display.NOTHING

    @column(description=_("created"))
    def created(self, operation: BulkOperation) -> Any:
        """When it was drafted."""
        return display.moment(operation.created_at)


def _name_of(operation: BulkOperation) -> str:
    """Kind and short id."""
    return f"{operation.get_kind_display()} {display.short_id(operation.pk)}"


def _start_label(draft: Draft, number: int) -> str:
    labels: dict[str, str] = {
        BulkKind.REPLAY: gettext("Replay %(jobs)s"),
        BulkKind.CANCEL: gettext("Cancel %(jobs)s"),
        BulkKind.RUN_NOW: gettext("Run %(jobs)s now"),
        BulkKind.RESCHEDULE: gettext("Reschedule %(jobs)s"),
        BulkKind.PRUNE: gettext("Prune %(jobs)s"),
    }
    return labels[draft.operation.kind] % {"jobs": number_text(draft, number)}
