"""What operators do with a bulk operation: start, pause, resume, stop, undo, and run it
step by step. Each has an address of its own that checks its own right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import JobQueueAdmin, may
from django_jobqueue.admin.bulk.bulk_progress import Progress
from django_jobqueue.admin.verbs.drafts import may_draft
from django_jobqueue.domain.states import BulkKind, BulkState
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import BulkOperation
from django_jobqueue.operations import bulk_counting, bulk_steps
from django_jobqueue.store.bulk.operation_rows import ACTIVE, OPEN, RESUMABLE
from django_jobqueue.text import numbers

STEP_SECONDS: Final = 2.0  # of work in a request, where no worker does it


class SteeredAdmin(JobQueueAdmin):
    """A page with buttons that steer what it is about."""

    def get_urls(self) -> list[URLPattern]:
        """An address for each thing that can be done with an operation."""
        own = [
            path(
                f"<uuid:id>/{name}/",
                self.admin_site.admin_view(partial(self.operate, name=name)),
                name=f"jobqueue_bulkoperation_{name}",
            )
            for name in ("start", "pause", "resume", "stop", "undo", "step")
        ]
        return [*own, *super().get_urls()]

    def operate(self, request: HttpRequest, id: UUID, *, name: str) -> HttpResponse:
        """Do one of these things, which only a POST can."""
        found: BulkOperation | None = self.get_object(request, str(id))
        if found is None:
            raise Http404
        if not self._may(request, found, name):
            raise PermissionDenied
        if request.method != "POST":
            return self.back(found.pk)
        if name == "start":
            return self.start(request, found)
        try:
            acts: dict[str, Callable[[HttpRequest, BulkOperation], UUID]] = {
                "pause": self._pause,
                "resume": self._resume,
                "stop": self._stop,
                "undo": self._undo,
                "step": self._step,
            }
            return self.back(acts[name](request, found))
        except JobQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return self.back(found.pk)

    def start(self, request: HttpRequest, found: BulkOperation) -> HttpResponse:
        """Start a draft, if what was said about it is right."""
        raise NotImplementedError

    def _may(self, request: HttpRequest, operation: BulkOperation, name: str) -> bool:
        """Stopping needs less than starting."""
        if not self.has_view_permission(request, operation):
            return False
        if name in ("pause", "stop"):
            return may(request, "start_bulkoperation")
        kind = BulkKind.CANCEL if name == "undo" else operation.kind
        return may_draft(request, kind)

    def _pause(self, request: HttpRequest, found: BulkOperation) -> UUID:
        done = operations.bulk.pause(found.pk, by=request.user.get_username())
        return self._said(request, found, done, gettext("Paused."))

    def _resume(self, request: HttpRequest, found: BulkOperation) -> UUID:
        done = operations.bulk.resume(found.pk, by=request.user.get_username())
        return self._said(request, found, done, gettext("Resumed."))

    def _stop(self, request: HttpRequest, found: BulkOperation) -> UUID:
        done = operations.bulk.stop(found.pk, by=request.user.get_username())
        if found.state == BulkState.DRAFT:
            text = gettext("Discarded.")
        else:
            text = gettext("Stopped. What it did stays.")
        return self._said(request, found, done, text)

    def _undo(self, request: HttpRequest, found: BulkOperation) -> UUID:
        """Draft what cancels the created jobs: its page asks, and nothing is done
        before."""
        made = operations.bulk.draft_undo(found.pk, by=request.user.get_username())
        return made.id

    def _step(self, request: HttpRequest, found: BulkOperation) -> UUID:
        if found.state == BulkState.DRAFT:
            bulk_counting.count_for(found.pk, STEP_SECONDS)
            return found.pk
        by = request.user.get_username()
        changed = bulk_steps.run_here(found.pk, STEP_SECONDS, by=by)
        text = ngettext(
            "One step was run here: %(count)s job was changed.",
            "One step was run here: %(count)s jobs were changed.",
            changed,
        )
        said = text % {"count": numbers.number(changed)}
        return self._said(request, found, True, said)

    def _said(
        self,
        request: HttpRequest,
        found: BulkOperation,
        done: bool,
        text: str,
    ) -> UUID:
        """Write it down and tell the operator; returns where to go."""
        if done:
            self.log_change(request, found, text)
            self.message_user(request, text, messages.SUCCESS)
        else:
            text = gettext("Nothing was changed: it is in another state by now.")
            self.message_user(request, text, messages.WARNING)
        return found.pk

    def controls(
        self, request: HttpRequest, operation: BulkOperation, progress: Progress
    ) -> list[dict[str, Any]]:
        """The buttons that this user has on this page."""
        state = operation.state
        resumable = state in RESUMABLE or (
            state in ACTIVE
            and operations.bulk.is_abandoned(operations.bulk.get(operation.pk))
        )
        offered = (
            ("pause", _("Pause"), state in ACTIVE),
            ("resume", _("Resume"), resumable),
            ("step", _("Run one step here"), state in ACTIVE and progress.nobody),
            ("stop", _("Stop"), state in OPEN),
            ("stop", _("Discard"), state == BulkState.DRAFT),
            (
                "undo",
                _("Cancel the created jobs that have not started (%(count)s)…")
                % {"count": progress.unstarted},
                bool(progress.unstarted) and state in operations.bulk.UNDOABLE,
            ),
        )
        return [
            {
                "label": label,
                "url": self.address_of(operation.pk, name),
                "danger": name in ("stop", "undo"),
            }
            for name, label, applies in offered
            if applies and self._may(request, operation, name)
        ]

    def address_of(self, id: UUID, name: str) -> str:
        """The address of what can be done with it."""
        found: str = reverse(
            f"{self.admin_site.name}:jobqueue_bulkoperation_{name}", args=[id]
        )
        return found

    def back(self, id: UUID) -> HttpResponseRedirect:
        """To the page of this operation."""
        name = f"{self.admin_site.name}:jobqueue_bulkoperation_change"
        return HttpResponseRedirect(reverse(name, args=[id]))
