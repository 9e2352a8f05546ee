"""A job enqueued by hand: the form asks for what the handler takes."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any, Final

from django import forms
from django.contrib.admin.models import ADDITION, LogEntry
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action, with_reason
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.jobs.argument_fields import Argument, JsonField, arguments_of
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.form_fields import (
    MomentField,
    MomentsForm,
    PriorityField,
    QueueField,
)
from django_jobqueue.conf import conf
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.job_options import OF_JOB
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.exceptions import AlreadyArchived, JobQueueError
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob

ARGUMENT: Final = "argument_"  # before a parameter's name, in that of its field
RAW: Final = "raw"  # the parameter of the address that asks for plain JSON


class NewJobForm(MomentsForm):
    """The arguments, and when, where and how urgently."""

    # Of the new job: a form that is sent twice makes one job.
    id = forms.UUIDField(widget=forms.HiddenInput, initial=new_id)
    run_after = MomentField(label=_("Run at"), help_text=_("Empty: now."))
    expires_at = MomentField(
        label=_("Expires at"), help_text=_("Empty: the default of the job type.")
    )
    queue = QueueField()
    priority = PriorityField(
        help_text=_(
            "-100 to 100; higher runs first. Empty: the default of the job type."
        )
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Kept in the history."),
    )

    def __init__(
        self,
        *args: Any,
        request: HttpRequest,
        job_type: JobType,
        declaration: Declaration | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._arguments: list[Argument] = []
        if declaration is not None:
            self._arguments = list(arguments_of(declaration))
        for argument in self._arguments:
            self.fields[f"{ARGUMENT}{argument.name}"] = argument.field
        self._others = _field_for_others(declaration)
        if self._others is not None:
            self.fields["others"] = self._others
        queue = self.fields["queue"]
        assert isinstance(queue, QueueField)
        own = gettext("%(name)s, the default of the job type") % {
            "name": display.visible(job_type.queue)
        }
        queue.offer(catalogue.queue_names(request), own)
        self.order_fields([*(f"{ARGUMENT}{a.name}" for a in self._arguments), "others"])

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The data of the new job."""
        arguments: dict[str, Any] = {}
        for argument in self._arguments:
            value = self.cleaned_data[f"{ARGUMENT}{argument.name}"]
            if not argument.is_left_out(value):
                arguments[argument.name] = argument.value_of(value)
        return {**arguments, **(self.cleaned_data.get("others") or {})}

    def clean_others(self) -> Any:
        """An object, since arguments have names."""
        others = self.cleaned_data["others"]
        if others is not None and not isinstance(others, dict):
            raise ValidationError(_("The data of a job is an object: {…}."))
        return others

    def refuse(self, problem: str) -> None:
        """Show why the job was refused, at the field that it names."""
        named = [a.name for a in self._arguments if repr(a.name) in problem]
        fallback = "others" if self._others is not None else None
        self.add_error(f"{ARGUMENT}{named[0]}" if named else fallback, problem)


class NewJob(Action):
    """Enqueue a job by hand."""

    name = "new"
    label = _("New job")
    rights = ("enqueue_job",)

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: JobType
    ) -> HttpResponse:
        """Ask for the arguments; enqueue what was sent."""
        declaration = None if RAW in request.GET else registry.get(row.name)
        form = NewJobForm(
            request.POST if request.method == "POST" else None,
            request=request,
            job_type=row,
            declaration=declaration,
        )
        if form.is_bound and form.is_valid():
            job = _enqueue(request, row, form)
            if job is not None:
                return _to(page, request, row, job)
        known = registry.get(row.name)
        doc = inspect.getdoc(known.function) if known else ""
        return page.show(
            request,
            "new_job.html",
            title=gettext("New job"),
            above=display.visible(row.name),
            above_url=page.url_of(row),
            media=page.media + form.media,
            form=form,
            doc=display.visible(doc or ""),
            is_known=known is not None,
            is_raw=declaration is None,
            is_paused=catalogue.is_paused(row),
        )


def _enqueue(
    request: HttpRequest, job_type: JobType, form: NewJobForm
) -> QueuedJob | ArchivedJob | None:
    """The new job; None if it was refused, which the form shows."""
    cleaned = form.cleaned_data
    options: Any = {
        name: None if value == "" else value
        for name, value in cleaned.items()
        if name in OF_JOB
    }
    user: Any = request.user
    try:
        with transaction.atomic(using=conf.database):
            job = operations.enqueue(
                job_type.name,
                form.arguments,
                by=user.get_username(),
                **options,
            )
            row = QueuedJob(id=job.id, job_type_id=job.job_type)
            entry = with_reason(gettext("Enqueued by hand."), cleaned["reason"])
            LogEntry.objects.log_actions(user.pk, [row], ADDITION, entry)
            return row
    except AlreadyArchived as error:
        return ArchivedJob(id=error.id, job_type_id=job_type.name)
    except JobQueueError as error:
        form.refuse(str(error))
        return None


def _to(
    page: ActionAdmin, request: HttpRequest, job_type: JobType, job: Any
) -> HttpResponse:
    """The page of the new job, for users who may see it."""
    if may_view(request, type(job)):
        return page.back_to(request, job, gettext("This is the new job."))
    return page.back_to(request, job_type, gettext("The job was enqueued."))


def _field_for_others(declaration: Declaration | None) -> JsonField | None:
    """A field for what no other field is for."""
    if declaration is None:
        return JsonField(
            label=_("Data"),
            initial="{}",
            help_text=_("A JSON object: a key for each argument."),
            widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        )
    if declaration.parameters.open_ended:
        return JsonField(
            label=_("More arguments"),
            required=False,
            help_text=_("A JSON object: the handler accepts any."),
        )
    return None
