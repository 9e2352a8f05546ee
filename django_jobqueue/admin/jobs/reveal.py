"""The secrets of one job, shown once to who may, and written down."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA
from django_jobqueue.admin.jobs.job_page import Reader
from django_jobqueue.admin.parts import catalogue, display


class Reveal(Action):
    """Data and result as they are."""

    name = "reveal"
    label = _("Reveal masked values (logged)")
    rights = (VIEW_DATA, REVEAL_DATA)
    is_button = False
    is_post_only = True

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """A page that no cache keeps, as none of the admin's; it is logged."""
        user: Any = request.user
        operations.reveal(row.pk, by=user.get_username())
        entry = gettext("Saw the secrets in the data and the result.")
        LogEntry.objects.log_actions(user.pk, [row], CHANGE, entry)
        job_type = catalogue.job_type(request, row.job_type_id)
        read = Reader(request, row, job_type, reveal=True)
        return page.show(
            request,
            "revealed.html",
            above=display.job_name(row),
            above_url=page.url_of(row),
            title=gettext("Data with secrets"),
            data=read.data(),
            result=read.result(),
        )
