"""Draft a bulk operation from a selection, and go to the page that asks whether to
start it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from django_jobqueue import operations
from django_jobqueue.admin.base import may
from django_jobqueue.admin.parts import display
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.operations.bulk_rights import rights_to_draft
from django_jobqueue.search.selection import Selection


def may_draft(request: HttpRequest, bulk_action: str) -> bool:
    """True if the user may do this with many jobs at once."""
    return all(may(request, right) for right in rights_to_draft(bulk_action))


def draft(
    request: HttpRequest,
    bulk_action: str,
    selection: Selection,
    *,
    back: str = "",
    **options: Any,
) -> HttpResponseRedirect:
    """Draft a bulk operation on these jobs, and go to its page, which asks; only for a
    POST.

    ``bulk_action`` is one of ``states.BulkKind``; the options are those of
    ``operations.bulk.draft``. A selection that is empty because a filter was not
    understood is refused with a message, back at ``back``. Raises PermissionDenied.
    """
    if request.method != "POST" or not may_draft(request, bulk_action):
        raise PermissionDenied
    if selection.nothing:
        text = gettext(
            "Nothing was changed, because a filter is invalid. Correct it first."
        )
        return _refused(request, text, back)
    by = request.user.get_username()
    try:
        made = operations.bulk.draft(bulk_action, selection, by=by, **options)
    except JobQueueError as error:
        return _refused(request, str(error), back)
    return HttpResponseRedirect(display.url_of("bulkoperation", made.id))


def _refused(request: HttpRequest, text: str, back: str) -> HttpResponseRedirect:
    messages.error(request, text)
    there = back or reverse("admin:jobqueue_bulkoperation_changelist")
    return HttpResponseRedirect(there)
