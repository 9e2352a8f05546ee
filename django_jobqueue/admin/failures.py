"""Failure groups: failures that are the same failure, and what people decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib.admin import display as column
from django.contrib.admin import register
from django.contrib.admin.views.main import ChangeList
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Func, IntegerField, OuterRef
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import display
from django_jobqueue.admin.base import JobQueueAdmin, may_view
from django_jobqueue.admin.change_list import PlainChangeList
from django_jobqueue.admin.filters import ChoiceFilter
from django_jobqueue.models import ArchivedJob, Failure, FailureGroup
from django_jobqueue.models.functions import ClockTimestamp
from django_jobqueue.policy import WHO_LENGTH
from django_jobqueue.states import GroupState

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[FailureGroup]
else:
    ModelForm = forms.ModelForm

MOST_COUNTED: Final = 1_000  # jobs of each group
EXAMPLES: Final = 10


class GroupStateFilter(ChoiceFilter):
    """By what people decided."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every state."""
        return list(GroupState.choices)


class FailureGroupChangeList(PlainChangeList):
    """With the number of jobs, counted so far and no further, from an index."""

    def find_page(self, request: HttpRequest) -> None:
        """Counted for the rows of the page only."""
        super().find_page(request)
        self.result_list = _with_figures(self.result_list)


class FailureGroupForm(ModelForm):
    """What people decide."""

    class Meta:
        model = FailureGroup
        fields = ("state", "assignee", "notes")
        widgets = {
            "assignee": forms.TextInput(attrs={"size": 40}),
            "notes": forms.Textarea(attrs={"rows": 6, "cols": 80}),
        }


@register(FailureGroup)
class FailureGroupAdmin(JobQueueAdmin):
    """Groups are made by workers; people decide about them."""

    change_form_template = "admin/jobqueue/failure_group.html"
    editable = True
    form = FailureGroupForm
    fieldsets = ((_("Decision"), {"fields": ("state", "assignee", "notes")}),)
    ordering = ("-first_seen", "-fingerprint")
    list_display = (
        "failure",
        "decided",
        "jobs",
        "last",
        "first",
        "assignee_name",
    )
    list_display_links = ("failure",)
    list_filter = (GroupStateFilter,)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list with figures from the archive."""
        return FailureGroupChangeList

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Write what was decided and by whom; a worker may have reopened the group
        since the page was opened, and that stands unless the state was changed."""
        columns = [*form.changed_data, "changed_at", "changed_by"]
        obj.changed_at = ClockTimestamp()
        obj.changed_by = request.user.get_username()[:WHO_LENGTH]
        if "state" in form.changed_data:
            resolved = obj.state == GroupState.RESOLVED
            obj.resolved_at = ClockTimestamp() if resolved else None
            columns.append("resolved_at")
        obj.save(update_fields=columns)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        group = context["original"]
        (figures,) = _with_figures(FailureGroup.objects.filter(pk=group.pk))
        context["state"] = state_of(group)
        context["summary"] = _summary(request, figures)
        context["sample"] = _sample(group)
        context["examples"] = _examples(request, group)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("failure"))
    def failure(self, group: FailureGroup) -> Any:
        """The class, the message with what varies left out, and the frame."""
        error = display.error_cell(group.error_class, group.template)
        frame = '<code class="jq-code">{}</code>'
        return display.lines([*error, format_html(frame, display.visible(group.frame))])

    @column(description=_("state"))
    def decided(self, group: FailureGroup) -> Any:
        """What was decided, and whether it came back."""
        return state_of(group)

    @column(description=_("archived jobs"))
    def jobs(self, group: Any) -> Any:
        """How many; up to a thousand are counted."""
        return _jobs(group)

    @column(description=_("last seen"))
    def last(self, group: Any) -> Any:
        """When a job was last archived with it."""
        return display.moment(group.last_seen)

    @column(description=_("first seen"))
    def first(self, group: FailureGroup) -> Any:
        """When it was seen first."""
        return display.moment(group.first_seen)

    @column(description=_("assignee"))
    def assignee_name(self, group: FailureGroup) -> str:
        """Who looks after it."""
        return display.visible(group.assignee) or display.NOTHING


def state_of(group: FailureGroup) -> Any:
    """What was decided, and whether it came back."""
    if group.state == GroupState.OPEN and group.regressed_at is not None:
        return display.pill("regressed", gettext("regressed"))
    return display.pill(group.state, group.get_state_display())


def _with_figures(queryset: QuerySet[FailureGroup]) -> QuerySet[Any]:
    """A look into the archive's index by fingerprint for each group."""
    jobs = ArchivedJob.objects.filter(fingerprint=OuterRef("fingerprint"))
    some = jobs.order_by().values("pk")[: MOST_COUNTED + 1]
    return queryset.annotate(
        counted=Func(
            ArraySubquery(some), function="cardinality", output_field=IntegerField()
        ),
    )


def _jobs(group: Any) -> Any:
    if group.counted <= MOST_COUNTED:
        return group.counted
    return f"{MOST_COUNTED:,}+"


def _summary(request: HttpRequest, group: Any) -> list[tuple[Any, Any]]:
    return [
        (_("Class"), display.visible(group.error_class)),
        (_("Message"), display.shown_text(group.template) or display.NOTHING),
        (_("Frame"), display.visible(group.frame)),
        (_("Fingerprint"), str(group.fingerprint)),
        (_("First seen"), display.full_moment(group.first_seen)),
        (_("Last seen"), display.full_moment(group.last_seen)),
        (_("Archived jobs"), _link_to_jobs(request, group)),
        (_("Resolved"), display.full_moment(group.resolved_at)),
        (_("Regressed"), display.full_moment(group.regressed_at)),
        (_("Changed"), display.full_moment(group.changed_at)),
        (_("Changed by"), display.visible(group.changed_by) or display.NOTHING),
    ]


def _link_to_jobs(request: HttpRequest, group: Any) -> Any:
    if not may_view(request, ArchivedJob):
        return _jobs(group)
    address = reverse("admin:jobqueue_archivedjob_changelist")
    return format_html(
        '<a href="{}?fingerprint={}">{}</a>', address, group.fingerprint, _jobs(group)
    )


def _sample(group: FailureGroup) -> dict[str, str] | None:
    """The latest failure that has a traceback to show."""
    found = (
        Failure.objects.filter(fingerprint=group.fingerprint)
        .order_by("-finished_at")
        .only("error_class", "error_message", "traceback")
        .first()
    )
    if found is None:
        return None
    return {
        "message": display.shown_text(found.error_message),
        "traceback": display.shown_text(found.traceback),
    }


def _examples(request: HttpRequest, group: FailureGroup) -> list[dict[str, Any]]:
    """The newest jobs that were archived with it."""
    if not may_view(request, ArchivedJob):
        return []
    found = (
        ArchivedJob.objects.filter(fingerprint=group.fingerprint)
        .order_by("-finished_at", "-id")
        .only("id", "job_type", "finished_at", "error_message")[:EXAMPLES]
    )
    return [
        {
            "job": display.link("archivedjob", job.pk, display.short_id(job.pk)),
            "job_type": display.visible(job.job_type_id),
            "finished": display.moment(job.finished_at),
            "message": display.shown_text(job.error_message, display.CELL),
        }
        for job in found
    ]
