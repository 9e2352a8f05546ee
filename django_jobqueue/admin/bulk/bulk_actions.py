"""Actions on a bulk operation: start, pause, resume, run a step, stop, undo."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.drafts import may_draft
from django_jobqueue.admin.work.work_actions import (
    STEP_SECONDS,
    Pause,
    Resume,
    RunStep,
    Stop,
    WorkAction,
)
from django_jobqueue.domain.states import BulkKind, WorkState
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import BulkOperation
from django_jobqueue.text import numbers

RIGHTS: Final = ("start_bulkoperation",)


class OfJobs(WorkAction):
    """It also needs the right to do the same to single jobs; pausing and stopping do
    not."""

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """Both rights."""
        if not super().is_allowed(request, row):
            return False
        return row is None or may_draft(request, row.kind)


class ResumeOperation(OfJobs, Resume):
    """Workers go on with it."""


class RunOperation(OfJobs, RunStep):
    """Do some of the work here, and say how much; the page of a draft shows the
    count."""

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: BulkOperation
    ) -> HttpResponse:
        """Count the jobs of a draft; else run a step."""
        if row.state == WorkState.DRAFT:
            return super().respond(page, request, row)
        return WorkAction.respond(self, page, request, row)

    def do(self, request: HttpRequest, row: BulkOperation) -> str:
        """Run one step."""
        by = request.user.get_username()
        changed = operations.bulk.run_here(row.pk, STEP_SECONDS, by=by)
        text = ngettext(
            "One step was run here: %(count)s job was changed.",
            "One step was run here: %(count)s jobs were changed.",
            changed,
        )
        return text % {"count": numbers.number(changed)}


class StopOperation(Stop):
    """Stop it, or discard a draft, whose row stays."""

    def do(self, request: HttpRequest, row: BulkOperation) -> str:
        """Stop or discard it."""
        text = super().do(request, row)
        is_draft = row.state == WorkState.DRAFT
        return gettext("Discarded.") if text and is_draft else text


class Undo(WorkAction):
    """Draft an operation that cancels the created jobs; its page asks."""

    name = "undo"
    label = _("Cancel the created jobs that have not started (%(count)s)…")
    danger = True

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """It cancels jobs, whatever the operation did."""
        return may_draft(request, BulkKind.CANCEL)

    def applies_to(self, row: Any) -> bool:
        """To one whose created jobs have not all started."""
        return bool(row.progress.unstarted) and row.state in operations.bulk.UNDOABLE

    def label_for(self, row: Any) -> Any:
        """With the number of jobs."""
        return self.label % {"count": row.progress.unstarted}

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: BulkOperation
    ) -> HttpResponse:
        """Go to the page of the draft."""
        by = request.user.get_username()
        try:
            made = operations.bulk.draft_undo(row.pk, by=by)
        except JobQueueError as error:
            return page.back_to(request, row, str(error), messages.ERROR)
        return page.to(BulkOperation(id=made.id))


PAUSE: Final = Pause(operations.bulk.WORK, RIGHTS)
RESUME: Final = ResumeOperation(operations.bulk.WORK, RIGHTS)
RUN_STEP: Final = RunOperation(operations.bulk.WORK, RIGHTS)
STOP: Final = StopOperation(operations.bulk.WORK, RIGHTS)
UNDO: Final = Undo(operations.bulk.WORK, RIGHTS)
