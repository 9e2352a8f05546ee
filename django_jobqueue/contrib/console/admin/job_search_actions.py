"""Actions on searches through all jobs: start, resume, run a step here, stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may, may_view
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.jobs.job_search import understood
from django_jobqueue.admin.work.work_actions import Resume, RunStep, Stop
from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.search import SearchError
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.text import numbers

RIGHTS: Final = ("jobqueue_console.start_jobsearch",)


class Start(Action):
    """Search what the user may see, for what was typed on the page of the search."""

    name = "start"
    label = _("Search all in the background")
    rights = RIGHTS
    is_for_selection = True
    is_button = False

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Go to the page of the search; back, if it is not understood."""
        if request.method != "POST":
            return HttpResponseRedirect(page.list_url)
        query = request.POST.get(SEARCH_VAR, "").replace("\x00", "").strip()
        selections = _selections(request, query)
        if not selections:  # that page says why, or has the answer already
            return HttpResponseRedirect(search_page.url_of(query))
        by = request.user.get_username()
        try:
            id = job_searches.start(query, selections, by=by)
        except InvalidArguments:
            text = gettext(
                "At most %(most)s of your searches can run at once. Stop one first."
            )
            text %= {"most": numbers.number(job_searches.MOST_ACTIVE)}
            page.message_user(request, text, messages.ERROR)
            return HttpResponseRedirect(page.list_url)
        search = JobSearch(id=id)
        page.log_change(request, search, gettext("Started."))
        return page.to(search)


class StopSearch(Stop):
    """What was found stays."""

    stopped = _("Stopped. Its results stay.")


RESUME: Final = Resume(job_searches.WORK, RIGHTS)
RUN_STEP: Final = RunStep(job_searches.WORK, RIGHTS)
STOP: Final = StopSearch(job_searches.WORK, RIGHTS)


def search_all(context: Mapping[str, Any]) -> str:
    """Offer a search of everything below one that did not go through all jobs, to users
    who may start it."""
    request, search = context["request"], context["search"]
    is_left = any(one.older for one in search.tables)
    sees = may_view(request, JobSearch)
    if not (is_left and sees and all(may(request, right) for right in RIGHTS)):
        return ""
    shown = {"query": search.query, "csrf_token": context.get("csrf_token")}
    return render_to_string("admin/jobqueue_console/search_all.html", shown)


def _selections(request: HttpRequest, query: str) -> dict[Table, Selection]:
    """What it selects of each table that the user may see; empty if it means nothing to
    any, or if it is of ids, which are found at once."""
    selections: dict[Table, Selection] = {}
    for model, table in search_page.TABLES:
        if not query or not may_view(request, model):
            continue
        try:
            selection, ids = understood(request, Selection(table), query)
        except SearchError:
            continue
        if ids:
            return {}
        selections[table] = selection
    return selections
