"""Actions on work in chunks: pause, resume, run a step here, stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.domain.states import WorkState
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.operations.chunked_work import ChunkedWork
from django_jobqueue.store.work_rows import ACTIVE

STEP_SECONDS: Final = 2.0  # of work in a request, where no worker does it


class WorkAction(Action):
    """A button that posts; the page of the work shows the result.

    Buttons read ``row.progress``, which the page sets.
    """

    is_post_only = True

    def __init__(self, work: ChunkedWork[Any], rights: Sequence[str]) -> None:
        self.work = work
        self.rights = rights

    def do(self, request: HttpRequest, row: Any) -> str:
        """Do it; returns a message, empty if the state does not allow it."""
        raise NotImplementedError

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Do it, log it, and go back with a message."""
        try:
            text = self.do(request, row)
        except JobQueueError as error:
            return page.back_to(request, row, str(error), messages.ERROR)
        if not text:
            text = gettext("Nothing was changed: its state has changed.")
            return page.back_to(request, row, text, messages.WARNING)
        page.log_change(request, row, text)
        return page.back_to(request, row, text)


class Pause(WorkAction):
    """Workers pause between two chunks."""

    name = "pause"
    label = _("Pause")

    def applies_to(self, row: Any) -> bool:
        """Only to what goes on."""
        return row.state in ACTIVE

    def do(self, request: HttpRequest, row: Any) -> str:
        """Pause it."""
        done = self.work.pause(row.pk, by=request.user.get_username())
        return gettext("Paused.") if done else ""


class Resume(WorkAction):
    """Workers go on with it."""

    name = "resume"
    label = _("Resume")

    def applies_to(self, row: Any) -> bool:
        """To what is paused, failed, or abandoned by its worker."""
        return row.state in self.work.resumable or (
            row.state in ACTIVE and self.work.is_abandoned(self.work.get(row.pk))
        )

    def do(self, request: HttpRequest, row: Any) -> str:
        """Resume it."""
        done = self.work.resume(row.pk, by=request.user.get_username())
        return gettext("Resumed.") if done else ""


class RunStep(WorkAction):
    """Do some of the work in this request, where no worker does it."""

    name = "step"
    label = _("Run one step here")

    def applies_to(self, row: Any) -> bool:
        """Only where no worker would."""
        return bool(row.progress.nobody)

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Run a step; the page shows how far it came."""
        try:
            self.work.run_for(row.pk, STEP_SECONDS)
        except JobQueueError as error:
            return page.back_to(request, row, str(error), messages.ERROR)
        return page.to(row)


class Stop(WorkAction):
    """Nothing more happens; a draft is discarded."""

    name = "stop"
    label = _("Stop")
    danger = True
    stopped: ClassVar[Any] = _("Stopped. Its changes stay.")

    def applies_to(self, row: Any) -> bool:
        """To what is not finished, and to a draft."""
        return row.state in self.work.stoppable or row.state == WorkState.DRAFT

    def label_for(self, row: Any) -> Any:
        """A draft did nothing yet."""
        return _("Discard") if row.state == WorkState.DRAFT else self.label

    def do(self, request: HttpRequest, row: Any) -> str:
        """Stop it."""
        done = self.work.stop(row.pk, by=request.user.get_username())
        return str(self.stopped) if done else ""
