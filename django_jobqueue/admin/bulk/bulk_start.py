"""Start a drafted bulk operation: the page that asks, and the action behind it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action, Button
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.drafts import may_draft
from django_jobqueue.admin.bulk.bulk_actions import RUN_STEP, STOP
from django_jobqueue.admin.bulk.bulk_draft import (
    Draft,
    examples_of,
    number_text,
    question_of,
)
from django_jobqueue.admin.bulk.bulk_forms import BulkForm
from django_jobqueue.admin.bulk.bulk_progress import selection_text
from django_jobqueue.admin.failures import failure_states
from django_jobqueue.admin.work.work_progress import trouble
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import BulkKind, GroupState, WorkState
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import BulkOperation, FailureGroup, JobType


class Start(Action):
    """The button of the form on the page of a draft."""

    name = "start"
    label = _("Start")
    is_button = False  # the form has one that says what will happen
    is_post_only = True

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """The right to start it, and to do this to single jobs."""
        return row is None or may_draft(request, row.kind)

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: BulkOperation
    ) -> HttpResponse:
        """Start it if the form is valid; else ask again."""
        if row.state != WorkState.DRAFT:
            return _too_late(page, request, row)
        draft = Draft(operations.bulk.get(row.pk))
        if not draft.may_start(request):
            raise PermissionDenied
        form = draft.form(request)
        if not form.is_valid():
            return draft_page(page, request, draft, form)
        try:
            with transaction.atomic(using=conf.database):
                started = _start(page, request, row, form)
        except JobQueueError as error:
            form.add_error(None, str(error))
            return draft_page(page, request, draft, form)
        if not started:
            return _too_late(page, request, row)
        _log(page, request, row, draft, form)
        return page.to(row)


START = Start()


def _start(
    page: ActionAdmin, request: HttpRequest, row: BulkOperation, form: BulkForm
) -> bool:
    """Start it, and resume the job types that were chosen; False if it was started or
    discarded already."""
    by = request.user.get_username()
    started = operations.bulk.start(
        row.pk,
        reason=form.cleaned_data["reason"],
        per_minute=form.rate(),
        by=by,
        **form.chosen(),
    )
    resumed = form.resumed() if started else []
    if resumed:
        operations.resume(resumed, by=by)
        for job_type in JobType.objects.filter(pk__in=resumed):
            page.log_change(request, job_type, gettext("Resumed."))
    return started


def draft_page(
    page: ActionAdmin, request: HttpRequest, draft: Draft, form: BulkForm
) -> HttpResponse:
    """The page that asks whether to start a draft."""
    operation = draft.operation
    question = question_of(request, draft, form.plan)
    if not draft.counted.over:
        warning, _nobody = trouble(request, operation)
        question.warnings += [warning] if warning else []
    row = BulkOperation(id=operation.id)
    start = page.address_of(START, row)
    danger = operation.kind in (BulkKind.CANCEL, BulkKind.PRUNE)
    return page.show_question(
        request,
        template="bulk_draft.html",
        question=question,
        form=form,
        operation=operation,
        is_counted=draft.counted.over,
        may_start=draft.may_start(request),
        button=Button(_start_label(draft, form.number), start, danger),
        action=start,
        count_here=page.address_of(RUN_STEP, row),
        discard=page.address_of(STOP, row),
        examples=examples_of(request, draft),
    )


def _log(
    page: ActionAdmin,
    request: HttpRequest,
    row: BulkOperation,
    draft: Draft,
    form: BulkForm,
) -> None:
    """Log the start, and that it resolved a failure group, or say why it did not."""
    key = draft.operation.options.resolves
    group = FailureGroup.objects.filter(pk=key).first() if key else None
    if group is not None:
        if failure_states.state_now(group) == GroupState.RESOLVED:
            page.log_change(request, group, gettext("Resolved."))
        else:
            text = gettext(
                "The failure has recurred meanwhile, so its group stays open."
            )
            page.message_user(request, text, messages.WARNING)
    entry = gettext("Started: %(kind)s, %(jobs)s. Filter: %(filter)s. %(reason)s") % {
        "kind": row.get_kind_display(),
        "jobs": number_text(draft, form.number),
        "filter": selection_text(row),
        "reason": form.cleaned_data["reason"],
    }
    page.log_change(request, row, entry.strip())


def _too_late(
    page: ActionAdmin, request: HttpRequest, row: BulkOperation
) -> HttpResponse:
    text = gettext("This was already started or discarded. Nothing ran twice.")
    return page.back_to(request, row, text, messages.WARNING)


def _start_label(draft: Draft, number: int) -> str:
    labels: dict[str, str] = {
        BulkKind.REPLAY: gettext("Replay %(jobs)s"),
        BulkKind.CANCEL: gettext("Cancel %(jobs)s"),
        BulkKind.RUN_NOW: gettext("Run %(jobs)s now"),
        BulkKind.RESCHEDULE: gettext("Reschedule %(jobs)s"),
        BulkKind.PRUNE: gettext("Delete %(jobs)s"),
    }
    return labels[draft.operation.kind] % {"jobs": number_text(draft, number)}
