"""Actions on all jobs of failure groups: each drafts a bulk operation, whose page asks
before anything happens to a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.drafts import draft, may_draft
from django_jobqueue.admin.failures.failure_decisions import DECIDE, SeenForm
from django_jobqueue.domain.states import ArchivedStatus, BulkKind
from django_jobqueue.models import FailureGroup
from django_jobqueue.search.selection import Selection, Table, Term

FAILED: Final = Term("status", ArchivedStatus.FAILED.value)


class GroupJobsAction(Action):
    """A bulk operation on the jobs of one group, or of the selected groups."""

    is_post_only = True
    bulk_action: ClassVar[BulkKind]
    table: ClassVar[Table] = Table.ARCHIVED
    only: ClassVar[tuple[Term, ...]] = ()

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """True if the user may draft it."""
        return super().is_allowed(request, row) and may_draft(request, self.bulk_action)

    def selection(self, fingerprints: Sequence[UUID]) -> Selection:
        """The jobs of these groups that it is about."""
        if len(fingerprints) == 1:
            groups = Term("group", fingerprints[0])
        else:
            groups = Term("groups", tuple(fingerprints))
        return Selection(self.table, (groups, *self.only))

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: FailureGroup
    ) -> HttpResponse:
        """Draft it, and go to the page that asks whether to start it."""
        return draft(
            request, self.bulk_action, self.selection([row.pk]), back=page.url_of(row)
        )

    def respond_to_selected(
        self, page: ActionAdmin, request: HttpRequest, keys: Sequence[Any]
    ) -> HttpResponse:
        """The same for the groups that are selected in the list."""
        back = request.get_full_path()
        return draft(request, self.bulk_action, self.selection(keys), back=back)


class ReplayGroupJobs(GroupJobsAction):
    """Replay the failed jobs."""

    name = "replay-jobs"
    label = _("Replay failed jobs")
    menu_label = _("Replay failed jobs of selected %(verbose_name_plural)s")
    bulk_action = BulkKind.REPLAY
    only = (FAILED,)


class ResolveAndReplay(GroupJobsAction):
    """The same, and resolve the group when the replay starts."""

    name = "resolve-and-replay"
    label = _("Resolve and replay failed jobs")
    rights = (DECIDE,)
    bulk_action = BulkKind.REPLAY
    only = (FAILED,)

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: FailureGroup
    ) -> HttpResponse:
        """Draft it, unless the group regressed since its page was made."""
        back = page.url_of(row)
        form = SeenForm(request.POST, request=request, rows=[row])
        seen = form.cleaned_data["seen"] if form.is_valid() else None
        if seen and row.regressed_at and row.regressed_at > seen:
            text = gettext(
                "The failure has recurred meanwhile, so its group stays open."
            )
            page.message_user(request, text, messages.WARNING)
            return HttpResponseRedirect(back)
        selection = self.selection([row.pk])
        return draft(request, self.bulk_action, selection, back=back, resolves=row.pk)


class CancelGroupJobs(GroupJobsAction):
    """Cancel the jobs that wait for another attempt."""

    name = "cancel-jobs"
    label = _("Cancel waiting jobs")
    menu_label = _("Cancel waiting jobs of selected %(verbose_name_plural)s")
    bulk_action = BulkKind.CANCEL
    table = Table.QUEUED
    danger = True


class PruneGroupJobs(GroupJobsAction):
    """Prune the archived jobs."""

    name = "prune-jobs"
    label = _("Delete archived jobs")
    menu_label = _("Delete archived jobs of selected %(verbose_name_plural)s")
    bulk_action = BulkKind.PRUNE
    danger = True
