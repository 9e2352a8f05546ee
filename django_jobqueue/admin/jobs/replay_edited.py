"""Replay one archived job with other data."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import with_reason
from django_jobqueue.admin.base import VIEW_DATA, may_view
from django_jobqueue.admin.jobs.data_changes import entry
from django_jobqueue.admin.jobs.data_page import DataAction, DataForm
from django_jobqueue.admin.jobs.replay_options import (
    ReplayOptions,
    options_of,
)
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models import QueuedJob


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
    label = _("Replay with other data")
    confirm = _("Replay")
    rights = (VIEW_DATA, "edit_job_data", "replay_archivedjob")
    form_class = ReplayEditedForm
    must_change = False

    def refusal(self, request: HttpRequest, row: Any) -> str:
        """Without a job type there is no handler."""
        if row.job_type_id in catalogue.job_types(request):
            return ""
        return gettext(
            "This job cannot be replayed: its job type is gone. Declare a handler of "
            "this name, and run migrate."
        )

    def facts(self, request: HttpRequest, job: Any) -> list[str]:
        """The effects that the old job may have had."""
        found = [gettext("The old job stays as it is; the new one links to it.")]
        job_type = catalogue.job_types(request)[job.job_type_id]
        if job_type.delivery == Delivery.AT_MOST_ONCE and job.attempts:
            found.append(
                gettext(
                    "Its type promises at most one attempt: what the old job did may "
                    "have taken effect."
                )
            )
        if catalogue.is_paused(job_type):
            found.append(gettext("The job type is paused: the new job will wait."))
        return found

    def act(self, request: HttpRequest, form: Any, expected: str) -> tuple[Any, str]:
        """Replay, and write down what was changed, with both."""
        user: Any = request.user
        said = form.cleaned_data
        made = operations.replay(
            form.job.pk, data=form.plain, by=user.get_username(), **options_of(said)
        )
        new = QueuedJob(id=made.id, job_type_id=made.job_type)
        text = with_reason(gettext("Replayed."), said["reason"])
        if form.changes:
            text = f"{text} {entry(form.changes)}"
        LogEntry.objects.log_actions(user.pk, [form.job, new], CHANGE, text)
        if not may_view(request, QueuedJob):
            return form.job, gettext("The job was replayed.")
        return new, gettext("This is the new job.")
