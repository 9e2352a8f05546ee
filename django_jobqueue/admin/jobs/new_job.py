"""A job enqueued by hand: the form asks for what the handler takes."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import may, may_view
from django_jobqueue.admin.jobs.argument_fields import Argument, JsonField, arguments_of
from django_jobqueue.admin.jobs.job_views import page_below
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.fields import PriorityField, QueueField
from django_jobqueue.admin.parts.moments import MomentField, MomentsForm
from django_jobqueue.admin.verbs.actions import OperatedAdmin
from django_jobqueue.admin.verbs.verb import with_reason
from django_jobqueue.conf import conf
from django_jobqueue.domain.ids import new_id
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
        label=_("Expires at"), help_text=_("Empty: what the job type says.")
    )
    queue = QueueField()
    priority = PriorityField(
        help_text=_("-100 to 100; greater is sooner. Empty: what the job type says.")
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
        self._rest = _rest_of(declaration)
        if self._rest is not None:
            self.fields["rest"] = self._rest
        queue = self.fields["queue"]
        assert isinstance(queue, QueueField)
        own = gettext("%(name)s, as the job type says") % {
            "name": display.visible(job_type.queue)
        }
        queue.offer(catalogue.queue_names(request), own)
        self.order_fields([*(f"{ARGUMENT}{a.name}" for a in self._arguments), "rest"])

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The data of the new job."""
        found: dict[str, Any] = {}
        for argument in self._arguments:
            value = self.cleaned_data[f"{ARGUMENT}{argument.name}"]
            if not argument.is_left_out(value):
                found[argument.name] = argument.value_of(value)
        return {**found, **(self.cleaned_data.get("rest") or {})}

    def clean_rest(self) -> Any:
        """An object, since arguments have names."""
        rest = self.cleaned_data["rest"]
        if rest is not None and not isinstance(rest, dict):
            raise ValidationError(_("The data of a job are an object: {…}."))
        return rest

    def refuse(self, problem: str) -> None:
        """Show why the job was refused, at the field that it names."""
        named = [a.name for a in self._arguments if repr(a.name) in problem]
        fallback = "rest" if self._rest is not None else None
        self.add_error(f"{ARGUMENT}{named[0]}" if named else fallback, problem)


class NewJobs(OperatedAdmin):
    """Job types whose pages lead to a form for a new job."""

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/job.css"]}

    def get_urls(self) -> list[URLPattern]:
        """The address of the form, before those of the objects."""
        view = self.admin_site.admin_view(self.new_job)
        name = f"{self._prefix}_new"
        return [path("<path:object_id>/new/", view, name=name), *super().get_urls()]

    def new_job(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for the arguments; enqueue what was sent."""
        if not (self.has_view_permission(request) and may(request, "enqueue_job")):
            raise PermissionDenied
        job_type = self.get_object(request, unquote(object_id))
        if job_type is None:
            raise Http404
        declaration = None if RAW in request.GET else registry.get(job_type.name)
        form = NewJobForm(
            request.POST if request.method == "POST" else None,
            request=request,
            job_type=job_type,
            declaration=declaration,
        )
        if form.is_bound and form.is_valid():
            response = self._enqueue(request, job_type, form)
            if response is not None:
                return response
        return self._form_page(request, job_type, declaration, form)

    def _enqueue(
        self, request: HttpRequest, job_type: JobType, form: NewJobForm
    ) -> HttpResponse | None:
        """To the new job; None if it was refused."""
        said = form.cleaned_data
        user: Any = request.user
        row: QueuedJob | ArchivedJob
        try:
            with transaction.atomic(using=conf.database):
                job = operations.enqueue(
                    job_type.name,
                    form.arguments,
                    run_after=said["run_after"],
                    expires_at=said["expires_at"],
                    priority=said["priority"],
                    queue=said["queue"] or None,
                    id=said["id"],
                    by=user.get_username(),
                )
                row = QueuedJob(id=job.id, job_type_id=job.job_type)
                entry = with_reason(gettext("Enqueued by hand."), said["reason"])
                LogEntry.objects.log_actions(user.pk, [row], ADDITION, entry)
        except AlreadyArchived as error:
            row = ArchivedJob(id=error.id, job_type_id=job_type.name)
        except JobQueueError as error:
            form.refuse(str(error))
            return None
        return self._to(request, job_type, row)

    def _to(self, request: HttpRequest, job_type: JobType, row: Any) -> HttpResponse:
        """The page of the new job, for who may see it."""
        text = gettext("This is the new job.")
        address = display.url_of(str(row._meta.model_name), row.pk)
        if not may_view(request, type(row)):
            text = gettext("The job was enqueued.")
            address = self._url(job_type)
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(address)

    def _form_page(
        self,
        request: HttpRequest,
        job_type: JobType,
        declaration: Declaration | None,
        form: NewJobForm,
    ) -> HttpResponse:
        known = registry.get(job_type.name)
        doc = inspect.getdoc(known.function) if known else ""
        return page_below(
            self,
            request,
            "new_job.html",
            title=gettext("New job"),
            above=display.visible(job_type.name),
            above_url=self._url(job_type),
            media=self.media + form.media,
            form=form,
            doc=display.visible(doc or ""),
            is_known=known is not None,
            is_raw=declaration is None,
            is_paused=catalogue.is_paused(job_type),
        )


def _rest_of(declaration: Declaration | None) -> JsonField | None:
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
            help_text=_("A JSON object: the handler takes any."),
        )
    return None
