"""Actions that ask for the data of one job: edit them, or replay with other data.

The data are written, compared, and confirmed."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action, with_reason
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.row_marks import mark_of
from django_jobqueue.admin.base import VIEW_DATA, may_view
from django_jobqueue.admin.jobs.data_changes import (
    MOST,
    Change,
    LockedData,
    changes,
    entry,
    plain,
)
from django_jobqueue.admin.jobs.replay_options import ReplayOptions, options_of
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.form_fields import MomentsForm
from django_jobqueue.admin.parts.json_text import stored, value_of
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import Delivery, QueuedStatus
from django_jobqueue.exceptions import InvalidArguments, JobQueueError
from django_jobqueue.models import QueuedJob
from django_jobqueue.operations.checks import checked_data

LARGEST: Final = 256 * 1024  # characters that an editor takes


class DataForm(MomentsForm):
    """The data, and what the page knew of them when it asked."""

    new_data = forms.CharField(
        label=_("Data"),
        strip=False,
        max_length=2 * LARGEST,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false"}),
    )
    # Of the job's own data when they were read, and of the text that was compared.
    mark = forms.CharField(required=False, widget=forms.HiddenInput)
    compared = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        request: HttpRequest,
        job: Any,
        locked: LockedData,
        mark: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {"new_data": locked.text, "mark": mark}
        self.request = request
        self.job = job
        self.locked = locked
        self.changes: list[Change] = []
        self.plain: dict[str, Any] = {}

    @property
    def digest(self) -> str:
        """Of the text that was sent, and of the data that it was compared with."""
        return mark_of(f"{self.data.get('mark', '')} {self.data.get('new_data', '')}")

    @property
    def is_compared(self) -> bool:
        """True if the operator saw the changes that this very text makes."""
        return constant_time_compare(self.data.get("compared", ""), self.digest)

    def clean_new_data(self) -> Any:
        """The arguments that the handler would get."""
        value = self.locked.read(self.cleaned_data["new_data"])
        if not isinstance(value, dict):
            raise ValidationError(_("The data of a job is an object: {…}."))
        self.plain = plain(value)
        try:
            checked_data(self.job.job_type_id, self.plain)
        except InvalidArguments as error:
            raise ValidationError(str(error)) from error
        self.changes = changes(self.locked, value)
        return value


class DataAction(Action):
    """Asks for data, shows what changes, and does it when that is confirmed."""

    form_class: ClassVar[type[DataForm]] = DataForm
    confirm: ClassVar[Any]  # on the button that does it
    must_change: ClassVar[bool] = True

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """The form, the form with its changes, or back to the job."""
        text = stored(row, LARGEST)["data"]
        value = value_of(text, LARGEST)
        if text is None or not isinstance(value, dict):
            refusal = gettext("This data is too large or too deep to be edited here.")
            return page.back_to(request, row, refusal, messages.ERROR)
        form = self._form(request, row, value, mark_of(text))
        if form.is_bound and form.data.get("mark") != mark_of(text):
            changed = gettext("The data was edited meanwhile. This is the new version.")
            page.message_user(request, changed, messages.ERROR)
            return HttpResponseRedirect(request.path)
        if form.is_bound and self._is_confirmed(form):
            return self._do(page, request, form, text)
        return self._page(page, request, form)

    def act(self, request: HttpRequest, form: Any, expected: str) -> tuple[Any, str]:
        """Do it; return the job to look at, and what to say. ``expected`` is the JSON
        text of the data that were compared."""
        raise NotImplementedError

    def facts(self, request: HttpRequest, job: Any) -> list[str]:
        """Facts to know before."""
        return []

    def _form(self, request: HttpRequest, job: Any, value: Any, mark: str) -> DataForm:
        job_type = catalogue.job_type(request, job.job_type_id)
        locked = LockedData(value, job_type.sensitive if job_type else ())
        data = request.POST if request.method == "POST" else None
        return self.form_class(data, request=request, job=job, locked=locked, mark=mark)

    def _is_confirmed(self, form: DataForm) -> bool:
        if not form.is_valid():
            return False
        if self.must_change and not form.changes:
            form.add_error("new_data", gettext("Nothing is changed yet."))
            return False
        return "confirmed" in form.data and form.is_compared

    def _do(
        self, page: ActionAdmin, request: HttpRequest, form: DataForm, text: str
    ) -> HttpResponse:
        try:
            with transaction.atomic(using=conf.database):
                job, message = self.act(request, form, text)
        except JobQueueError as error:
            return page.back_to(request, form.job, str(error), messages.ERROR)
        return page.back_to(request, job, message)

    def _page(
        self, page: ActionAdmin, request: HttpRequest, form: DataForm
    ) -> HttpResponse:
        is_right = form.is_bound and not form.errors
        if is_right:
            form.data = {**dict(form.data.items()), "compared": form.digest}
        return page.show(
            request,
            "data_form.html",
            above=display.job_name(form.job),
            above_url=page.url_of(form.job),
            title=self.label,
            facts=self.facts(request, form.job),
            form=form,
            is_compared=is_right,
            changes=form.changes[:MOST],
            more_changes=max(0, len(form.changes) - MOST),
            confirm=self.confirm,
        )


class EditData(DataAction):
    """The same job gets other data before it runs."""

    name = "edit_data"
    label = _("Edit data")
    confirm = _("Save")
    rights = (VIEW_DATA, "edit_job_data")

    def applies_to(self, row: Any) -> bool:
        """Only what is not running."""
        return bool(row.status == QueuedStatus.QUEUED)

    def refusal(self, request: HttpRequest, row: Any) -> str:
        """A running job was given its data already."""
        if self.applies_to(row):
            return ""
        return gettext("This job is running: its data cannot be edited any more.")

    def act(
        self, request: HttpRequest, form: DataForm, expected: str
    ) -> tuple[Any, str]:
        """Edit, and write down what changed."""
        user: Any = request.user
        by = user.get_username()
        operations.edit_data(form.job.pk, form.plain, expected=expected, by=by)
        LogEntry.objects.log_actions(user.pk, [form.job], CHANGE, entry(form.changes))
        return form.job, gettext("The data was saved.")


class ReplayEditedForm(DataForm, ReplayOptions):
    """The data, and how to replay."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_queues(self.request)
        self.offer_expiry(self.job.expires_at is not None)
        self.order_fields(["new_data"])


class ReplayEdited(DataAction):
    """A new job that remembers the old one, and has other data."""

    name = "replay_edited"
    label = _("Edit and replay")
    confirm = _("Replay")
    rights = (VIEW_DATA, "edit_job_data", "replay_archivedjob")
    form_class = ReplayEditedForm
    must_change = False

    def refusal(self, request: HttpRequest, row: Any) -> str:
        """Without a job type there is no handler."""
        if catalogue.job_type(request, row.job_type_id):
            return ""
        return gettext(
            "This job cannot be replayed: its job type is gone. Declare a handler of "
            "this name, and run migrate."
        )

    def facts(self, request: HttpRequest, job: Any) -> list[str]:
        """The effects that the old job may have had."""
        facts = [gettext("The old job stays as it is; the new one links to it.")]
        job_type = catalogue.job_types(request, [job.job_type_id])[job.job_type_id]
        if job_type.delivery == Delivery.AT_MOST_ONCE and job.attempts:
            facts.append(
                gettext(
                    "Its type promises at most one attempt: the old job may have taken "
                    "effect."
                )
            )
        if catalogue.is_paused(job_type):
            facts.append(gettext("The job type is paused: the new job will wait."))
        return facts

    def act(self, request: HttpRequest, form: Any, expected: str) -> tuple[Any, str]:
        """Replay, and write down what was changed, with both."""
        user: Any = request.user
        cleaned = form.cleaned_data
        made = operations.replay(
            form.job.pk, data=form.plain, by=user.get_username(), **options_of(cleaned)
        )
        new = QueuedJob(id=made.id, job_type_id=made.job_type)
        text = with_reason(gettext("Replayed."), cleaned["reason"])
        if form.changes:
            text = f"{text} {entry(form.changes)}"
        LogEntry.objects.log_actions(user.pk, [form.job, new], CHANGE, text)
        if not may_view(request, QueuedJob):
            return form.job, gettext("The job was replayed.")
        return new, gettext("This is the new job.")
