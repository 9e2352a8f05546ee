"""Failure groups: failures that are the same failure, and what people decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin import AdminSite, register
from django.contrib.admin import display as column
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models.query import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import display, drafts, failure_list, failure_states
from django_jobqueue.admin.actions import OperatedAdmin
from django_jobqueue.admin.base import may
from django_jobqueue.admin.failure_filters import (
    AssigneeFilter,
    GroupJobTypeFilter,
    GroupStateFilter,
    SeenRangeFilter,
)
from django_jobqueue.admin.failure_jobs import OPERATIONS, GroupOperation, action
from django_jobqueue.admin.failure_list import FailureGroupChangeList
from django_jobqueue.admin.failure_page import page_of, summary
from django_jobqueue.admin.failure_verbs import (
    AssignGroups,
    IgnoreGroups,
    NoteGroups,
    ReopenGroups,
    ResolveGroups,
    SeenForm,
)
from django_jobqueue.admin.positions import Key
from django_jobqueue.admin.sparkline import sparkline
from django_jobqueue.admin.verbs import Verb
from django_jobqueue.models import FailureGroup
from django_jobqueue.states import BulkKind


@register(FailureGroup)
class FailureGroupAdmin(OperatedAdmin):
    """Groups are made by workers; people decide about them."""

    change_form_template = "admin/jobqueue/failure_group.html"
    verbs: ClassVar[Sequence[Verb]] = (
        ResolveGroups(),
        IgnoreGroups(),
        ReopenGroups(),
        AssignGroups(),
        NoteGroups(),
    )
    key = Key(FailureGroup, ("last_seen", "fingerprint"))
    ordering = ("-last_seen", "-fingerprint")
    list_columns = (
        "fingerprint",
        "error_class",
        "frame",
        "template",
        "state",
        "first_seen",
        "last_seen",
        "resolved_in",
        "regressed_at",
        "ignored_until",
        "assignee",
    )
    list_display = (
        "failure",
        "decided",
        "jobs",
        "seen",
        "affected",
    )
    list_display_links = ("failure",)
    list_filter = (
        GroupStateFilter,
        AssigneeFilter,
        GroupJobTypeFilter,
        ("last_seen", SeenRangeFilter),
    )
    search_fields = ("error_class",)  # shows the box; the search is our own
    search_help_text = _(
        "The beginning of a class, a message or a place; or a fingerprint."
    )

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": [
                "django_jobqueue/overview.css",
                "django_jobqueue/traceback.css",
                "django_jobqueue/triage.css",
            ]
        }

    def __init__(self, model: type[FailureGroup], admin_site: AdminSite) -> None:
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
        if operation.resolves and not self._resolve(request, group):
            return HttpResponseRedirect(back)
        selection = operation.selection([group.pk])
        return drafts.draft(request, operation.kind, selection, back=back)

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

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that is paged by its key, with figures."""
        return FailureGroupChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By the beginnings of what a group is named for."""
        if not search_term.strip():
            return queryset, False
        return failure_list.searched(queryset, search_term), False

    def dress(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """The figures of the page's groups."""
        for row in failure_list.dress(rows):
            row.request = request
        return rows

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        group = context["original"]
        context["subtitle"] = display.visible(str(group))
        context["state"] = failure_states.pill(group)
        context["summary"] = summary(request, group)
        context["page"] = page_of(request, group)
        context["buttons"] = self.buttons(request, group)
        context["operations"] = [
            {"operation": one, "url": self._operation_url(one, group)}
            for one in OPERATIONS
            if self.may_draft(request, one)
        ]
        context["notes"] = display.shown_text(group.notes)
        context["now"] = timezone.now().isoformat()
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("failure"))
    def failure(self, group: FailureGroup) -> Any:
        """The class, the message with what varies left out, and the frame."""
        error = display.error_cell(group.error_class, group.template)
        frame = '<code class="jq-code">{}</code>'
        return display.lines([*error, format_html(frame, display.visible(group.frame))])

    @column(description=_("state"))
    def decided(self, group: FailureGroup) -> Any:
        """What was decided, whether it came back, and who looks after it."""
        return failure_states.pill(group, with_assignee=True)

    @column(description=_("24 hours"))
    def jobs(self, group: Any) -> Any:
        """How often it failed, hour by hour; how many jobs were archived with it, and
        how many wait for another attempt."""
        about = group.around
        counts = failure_list.job_counts(group.request, group.pk, about.figures)
        return display.lines([sparkline(about.spark), *counts])

    @column(description=_("seen"))
    def seen(self, group: Any) -> Any:
        """When it failed so last, and first."""
        first = failure_states.quiet(display.moment(group.first_seen))
        return display.lines([display.moment(group.last_seen), first])

    @column(description=_("types and releases"))
    def affected(self, group: Any) -> Any:
        """Of its newest failures."""
        return failure_list.names_cell(group.around.figures)

    def _resolve(self, request: HttpRequest, group: FailureGroup) -> bool:
        """Resolve it, unless it regressed since the page was made."""
        form = SeenForm(request.POST, request=request, rows=[group])
        seen = form.cleaned_data["seen"] if form.is_valid() else None
        self._do(request, ResolveGroups(), [group], {"in_release": "", "seen": seen})
        group.refresh_from_db(fields=["state"])
        return failure_states.state_now(group) == "resolved"

    def _operation_url(self, operation: GroupOperation, group: FailureGroup) -> str:
        name = f"{self._namespace}:{self._prefix}_{operation.name}"
        address: str = reverse(name, args=[quote(group.pk)])
        return address
