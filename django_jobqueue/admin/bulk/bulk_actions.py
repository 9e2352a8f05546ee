"""Actions on a bulk operation: start, pause, resume, run a step, stop, undo."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.drafts import may_draft
from django_jobqueue.domain.states import BulkKind, WorkState
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import BulkOperation
from django_jobqueue.store.work_rows import ACTIVE, OPEN, RESUMABLE
from django_jobqueue.text import numbers

STEP_SECONDS: Final = 2.0  # of work in a request, where no worker does it


class OperationAction(Action):
    """A button that posts; the page of the operation shows the result.

    Buttons read ``row.progress``, which the page sets.
    """

    is_post_only = True
    rights = ("start_bulkoperation",)
    # Whether it also needs the right to do the same to single jobs.
    needs_single_right: ClassVar[bool] = True

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """Pausing and stopping need fewer rights than starting."""
        if not super().is_allowed(request, row):
            return False
        return (
            row is None or not self.needs_single_right or may_draft(request, row.kind)
        )

    def do(self, request: HttpRequest, row: BulkOperation) -> str:
        """Do it; returns a message, empty if the state does not allow it."""
        raise NotImplementedError

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: BulkOperation
    ) -> HttpResponse:
        """Do it, log it, and go back with a message."""
        try:
            text = self.do(request, row)
        except JobQueueError as error:
            return page.back_to(request, row, str(error), messages.ERROR)
        if not text:
            text = gettext("Nothing was changed: it is in another state by now.")
            return page.back_to(request, row, text, messages.WARNING)
        page.log_change(request, row, text)
        return page.back_to(request, row, text)


class Pause(OperationAction):
    """Workers pause between two steps."""

    name = "pause"
    label = _("Pause")
    needs_single_right = False

    def applies_to(self, row: Any) -> bool:
        """Only to an operation that goes on."""
        return row.state in ACTIVE

    def do(self, request: HttpRequest, row: BulkOperation) -> str:
        """Pause it."""
        done = operations.bulk.pause(row.pk, by=request.user.get_username())
        return gettext("Paused.") if done else ""


class Resume(OperationAction):
    """Workers go on with it."""

    name = "resume"
    label = _("Resume")

    def applies_to(self, row: Any) -> bool:
        """To one that is paused, or that its worker abandoned."""
        return row.state in RESUMABLE or (
            row.state in ACTIVE
            and operations.bulk.is_abandoned(operations.bulk.get(row.pk))
        )

    def do(self, request: HttpRequest, row: BulkOperation) -> str:
        """Resume it."""
        done = operations.bulk.resume(row.pk, by=request.user.get_username())
        return gettext("Resumed.") if done else ""


class RunStep(OperationAction):
    """Do some of the work in this request, where no worker does it."""

    name = "step"
    label = _("Run one step here")

    def applies_to(self, row: Any) -> bool:
        """Only where no worker would."""
        return row.state in ACTIVE and row.progress.nobody

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: BulkOperation
    ) -> HttpResponse:
        """Count the jobs of a draft, whose page shows the count; else run a step."""
        if row.state == WorkState.DRAFT:
            try:
                operations.bulk.WORK.run_for(row.pk, STEP_SECONDS)
            except JobQueueError as error:
                return page.back_to(request, row, str(error), messages.ERROR)
            return page.to(row)
        return super().respond(page, request, row)

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


class Stop(OperationAction):
    """Nothing more happens; a draft is discarded."""

    name = "stop"
    label = _("Stop")
    danger = True
    needs_single_right = False

    def applies_to(self, row: Any) -> bool:
        """To one that is not finished, and to a draft."""
        return row.state in OPEN or row.state == WorkState.DRAFT

    def label_for(self, row: Any) -> Any:
        """A draft did nothing yet."""
        return _("Discard") if row.state == WorkState.DRAFT else self.label

    def do(self, request: HttpRequest, row: BulkOperation) -> str:
        """Stop or discard it."""
        done = operations.bulk.stop(row.pk, by=request.user.get_username())
        if not done:
            return ""
        if row.state == WorkState.DRAFT:
            return gettext("Discarded.")
        return gettext("Stopped. What it did stays.")


class Undo(OperationAction):
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


PAUSE, RESUME, RUN_STEP, STOP, UNDO = Pause(), Resume(), RunStep(), Stop(), Undo()
