"""The secrets of one job, shown once to who may, and written down."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA
from django_jobqueue.admin.jobs.job_page import Reader
from django_jobqueue.admin.jobs.job_views import JobView, JobViews
from django_jobqueue.admin.parts import catalogue


class Reveal(JobView):
    """Data and result as they are."""

    name = "reveal"
    label = _("Show the secrets")
    rights = (VIEW_DATA, REVEAL_DATA)
    is_button = False

    def respond(
        self, model_admin: JobViews, request: HttpRequest, job: Any
    ) -> HttpResponse:
        """A page that only a POST shows; no cache keeps pages of the admin."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        user: Any = request.user
        operations.reveal(job.pk, by=user.get_username())
        entry = gettext("Saw the secrets in the data and the result.")
        LogEntry.objects.log_actions(user.pk, [job], CHANGE, entry)
        job_type = catalogue.job_types(request).get(job.job_type_id)
        read = Reader(request, job, job_type, reveal=True)
        return model_admin.render(
            request,
            "revealed.html",
            job,
            title=gettext("Data with secrets"),
            data=read.data(),
            result=read.result(),
        )
