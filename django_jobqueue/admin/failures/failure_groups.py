"""Failure groups: failures that are the same failure, and what people decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.views.main import ChangeList
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.failures import failure_list, failure_states
from django_jobqueue.admin.failures.failure_decisions import (
    AssignGroups,
    IgnoreGroups,
    NoteGroups,
    ReopenGroups,
    ResolveGroups,
)
from django_jobqueue.admin.failures.failure_job_actions import (
    CancelGroupJobs,
    PruneGroupJobs,
    ReplayGroupJobs,
    ResolveAndReplay,
)
from django_jobqueue.admin.failures.failure_list import FailureGroupChangeList
from django_jobqueue.admin.failures.failure_matrix import FailureMatrix
from django_jobqueue.admin.failures.failure_order import SORT
from django_jobqueue.admin.failures.failure_page import page_of, summary
from django_jobqueue.admin.failures.failure_states import (
    AssigneeFilter,
    GroupJobTypeFilter,
    GroupStateFilter,
)
from django_jobqueue.admin.lists.columns import column, moment_cell
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.admin.lists.ranges import ColumnRangeFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.charts import sparkline
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.models import FailureGroup
from django_jobqueue.text import timezones


class FailureGroupAdmin(ActionAdmin):
    """Groups are made by workers; people decide about them."""

    change_form_template = "admin/jobqueue/failure_group.html"
    page_actions: ClassVar[Sequence[Action]] = (
        ResolveGroups(),
        IgnoreGroups(),
        ReopenGroups(),
        AssignGroups(),
        NoteGroups(),
        ReplayGroupJobs(),
        ResolveAndReplay(),
        CancelGroupJobs(),
        PruneGroupJobs(),
        FailureMatrix(),
    )
    other_parameters = (SORT,)
    key = Key(FailureGroup, ("last_seen", "fingerprint"))
    ordering = ("-last_seen", "-fingerprint")
    list_per_page = 30  # each has a small chart: 110 kB
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
        "failures",
        "jobs",
        "seen",
        "affected",
    )
    list_display_links = ("failure",)
    list_filter = (
        GroupStateFilter,
        AssigneeFilter,
        GroupJobTypeFilter,
        ("last_seen", ColumnRangeFilter),
    )
    search_fields = ("error_class",)  # shows the box; the search is our own
    search_help_text = _("Words of a class, a message or a place; or a fingerprint.")

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": [
                "django_jobqueue/overview.css",
                "django_jobqueue/traceback.css",
                "django_jobqueue/triage.css",
            ]
        }

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that is paged by its key, with figures."""
        return FailureGroupChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By words of the class, message or place."""
        if not search_term.strip():
            return queryset, False
        return failure_list.searched(queryset, search_term), False

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Back to the list, with a message."""
        self.message_user(request, gettext("It is gone."), messages.WARNING)
        return HttpResponseRedirect(self.next_url(request))

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """The figures of the page's groups."""
        for row in failure_list.annotate(rows):
            row.request = request
        return rows

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        group = context["original"]
        context["subtitle"] = display.visible(str(group))
        context["state"] = failure_states.pill(group)
        context["is_answered"] = failure_states.is_answered(group)
        context["summary"] = summary(request, group)
        context["page"] = page_of(request, group)
        context["notes"] = linked(display.shown_text(group.notes))
        context["now"] = timezones.now().isoformat()
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("failure"))
    def failure(self, group: FailureGroup) -> Any:
        """The class, the message with what varies left out, and the frame."""
        error = display.error_cell(group.error_class, group.template)
        frame = '<code class="jq-code" dir="ltr">{}</code>'
        return display.lines(
            [*error, format_html(frame, display.breakable(group.frame))]
        )

    @column(description=_("state"))
    def decided(self, group: FailureGroup) -> Any:
        """The decision, whether it regressed, and the assignee."""
        return failure_states.pill(group, with_assignee=True)

    @column(description=_("failures"))
    def failures(self, group: Any) -> Any:
        """How often it failed, hour by hour, in a day and in the last hour."""
        about = group.row_context.lately
        counts = failure_list.failure_counts(about)
        return display.lines([sparkline(about.spark), *counts])

    @column(description=_("jobs"))
    def jobs(self, group: Any) -> Any:
        """How many jobs were archived with it, and how many wait for another
        attempt."""
        figures = group.row_context.figures
        return display.lines(failure_list.job_counts(group.request, group.pk, figures))

    @column(description=_("seen"))
    def seen(self, group: Any) -> Any:
        """When it failed so last, and first."""
        first = failure_states.quiet(moment_cell(group, group.first_seen))
        return display.lines([moment_cell(group, group.last_seen), first])

    @column(description=_("types and releases"))
    def affected(self, group: Any) -> Any:
        """Of its newest failures."""
        return failure_list.names_cell(group.row_context.figures)
