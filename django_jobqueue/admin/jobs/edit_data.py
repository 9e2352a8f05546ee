"""Edit the data of a job that waits."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import VIEW_DATA
from django_jobqueue.admin.jobs.data_changes import entry
from django_jobqueue.admin.jobs.data_page import DataAction, DataForm
from django_jobqueue.domain.states import QueuedStatus


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
        return form.job, gettext("The data were saved.")
