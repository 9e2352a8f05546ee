"""Job types: the policy in force and where it comes from; overrides; pauses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib.admin import display as column
from django.contrib.admin import register
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import catalogue, display, policies
from django_jobqueue.admin.actions import OperatedAdmin
from django_jobqueue.admin.base import may
from django_jobqueue.admin.pause import Pause, Resume
from django_jobqueue.admin.verbs import Verb
from django_jobqueue.models import JobType
from django_jobqueue.policy import NO_LIMIT, priority_problem
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.notify import News, notify

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[JobType]
else:
    ModelForm = forms.ModelForm

OVERRIDES: Final = (
    "priority_override",
    "max_attempts_override",
    "timeout_override",
    "concurrency_override",
    "keep_succeeded_override",
    "keep_unsuccessful_override",
)
HOW_LONG = _("Seconds, or hours:minutes:seconds, or days and hours:minutes:seconds.")


class OverridesForm(ModelForm):
    """What operators say instead of the code."""

    class Meta:
        model = JobType
        fields = OVERRIDES

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("keep_succeeded_override", "keep_unsuccessful_override"):
            if name in self.fields:
                self.fields[name].help_text = HOW_LONG
        if "timeout_override" in self.fields:
            help_text = self.fields["timeout_override"].help_text
            self.fields["timeout_override"].help_text = f"{HOW_LONG} {help_text}"

    def clean_priority_override(self) -> int | None:
        """From -100 to 100."""
        value: int | None = self.cleaned_data["priority_override"]
        if value is not None and priority_problem(value):
            raise ValidationError(_("From -100 to 100; greater is sooner."))
        return value

    def clean_max_attempts_override(self) -> int | None:
        """At least one, or without end."""
        value: int | None = self.cleaned_data["max_attempts_override"]
        if value is not None and value != NO_LIMIT and value < 1:
            raise ValidationError(_("At least 1, or -1 for without end."))
        return value

    def clean_concurrency_override(self) -> int | None:
        """At least zero, or no limit."""
        value: int | None = self.cleaned_data["concurrency_override"]
        if value is not None and value < NO_LIMIT:
            raise ValidationError(_("At least 0, or -1 for no limit."))
        return value

    def clean_timeout_override(self) -> timedelta | None:
        """Not negative."""
        return self._span("timeout_override")

    def clean_keep_succeeded_override(self) -> timedelta | None:
        """Not negative."""
        return self._span("keep_succeeded_override")

    def clean_keep_unsuccessful_override(self) -> timedelta | None:
        """Not negative."""
        return self._span("keep_unsuccessful_override")

    def _span(self, name: str) -> timedelta | None:
        value: timedelta | None = self.cleaned_data[name]
        if value is not None and value < timedelta(0):
            raise ValidationError(_("Not less than zero."))
        return value


@register(JobType)
class JobTypeAdmin(OperatedAdmin):
    """What the code declares, and what operators say instead."""

    change_form_template = "admin/jobqueue/job_type.html"
    editable = True
    form = OverridesForm
    fieldsets = ((None, {"fields": OVERRIDES}),)
    verbs: ClassVar[Sequence[Verb]] = (Pause(), Resume())
    ordering = ("name",)
    list_display = (
        "type_name",
        "queue_name",
        "state",
        "delivery",
        "max_attempts_now",
        "timeout_now",
        "concurrency_now",
        "priority_now",
    )
    list_display_links = ("type_name",)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause and resume."""
        return may(request, "pause_jobtype")

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Write the changed overrides and nothing else: a deployment or a pause may
        have changed the rest since the page was opened."""
        obj.save(update_fields=form.changed_data)
        notify(DjangoDatabase(), News.JOB_TYPES)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        job_type = context["original"]
        form = context["adminform"].form
        context["state"] = state_of(job_type)
        context["summary"] = _summary(job_type)
        context["policy"] = [
            (row, form[row.name] if row.name in form.fields else None)
            for row in policies.rows_of(job_type)
        ]
        context["buttons"] = self.buttons(request, job_type)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("name"))
    def type_name(self, job_type: JobType) -> str:
        """The name."""
        return display.visible(job_type.name)

    @column(description=_("queue"))
    def queue_name(self, job_type: JobType) -> str:
        """Where its jobs wait, unless they say otherwise."""
        return display.visible(job_type.queue)

    @column(description=_("state"))
    def state(self, job_type: JobType) -> Any:
        """Whether it is claimed."""
        return state_of(job_type)

    @column(description=_("max attempts"))
    def max_attempts_now(self, job_type: JobType) -> str:
        """The number in force."""
        return policies.attempts_text(policies.effective_max_attempts(job_type))

    @column(description=_("timeout"))
    def timeout_now(self, job_type: JobType) -> str:
        """The timeout in force."""
        return display.length(policies.effective_timeout(job_type))

    @column(description=_("concurrency"))
    def concurrency_now(self, job_type: JobType) -> str:
        """The limit in force."""
        return policies.limit_text(policies.effective_concurrency(job_type))

    @column(description=_("priority"))
    def priority_now(self, job_type: JobType) -> int:
        """The priority in force."""
        return policies.effective_priority(job_type)


def state_of(row: Any) -> Any:
    """Whether a job type or queue is claimed."""
    if not catalogue.is_paused(row):
        return display.pill("open", gettext("open"))
    if row.resume_at is None:
        return display.pill("paused", gettext("paused"))
    text = gettext("paused until %(time)s") % {"time": display.exact(row.resume_at)}
    return display.pill("paused", text)


def pause_of(row: Any) -> list[tuple[Any, Any]]:
    """Who paused a job type or queue, when and why."""
    if not catalogue.is_paused(row):
        return []
    return [
        (_("Paused by"), display.visible(row.paused_by) or display.NOTHING),
        (_("Paused"), display.full_moment(row.paused_at)),
        (_("Reason"), display.visible(row.paused_reason) or display.NOTHING),
    ]


def _summary(job_type: JobType) -> list[tuple[Any, Any]]:
    return [
        *pause_of(job_type),
        (_("Handler"), display.visible(job_type.handler) or display.NOTHING),
        (_("Description"), display.visible(job_type.description) or display.NOTHING),
        (_("Queue"), display.visible(job_type.queue)),
        (_("Delivery"), job_type.get_delivery_display()),
        (_("Backoff"), display.visible(job_type.backoff)),
        (_("Atomic"), gettext("yes") if job_type.atomic else gettext("no")),
        (_("Expires in"), display.length(job_type.expires_in)),
        (_("Max crashes"), job_type.max_crashes),
        (_("Sensitive"), display.names(job_type.sensitive) or display.NOTHING),
        (_("Declared"), display.full_moment(job_type.declared_at)),
    ]
