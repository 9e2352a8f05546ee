"""Searches through all jobs: the list, and the page of each with its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib.admin import AdminSite
from django.contrib.admin.views.main import SEARCH_VAR
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.jobs.job_search import check_data
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.work.work_admin import WorkAdmin
from django_jobqueue.admin.work.work_progress import WorkProgress
from django_jobqueue.contrib.console.admin.job_search_actions import (
    RESUME,
    RUN_STEP,
    STOP,
    Start,
)
from django_jobqueue.contrib.console.job_searches import time_of
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.domain.states import WorkState
from django_jobqueue.search import SearchError
from django_jobqueue.search.selection import Selection, SelectionError, Table
from django_jobqueue.store.work_rows import ACTIVE
from django_jobqueue.text import numbers

PAGE: Final = "p"  # in the address
ROWS: Final = 100  # of a page
RETENTION: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class MatchingJobs:
    """The jobs found in a table, as far as the page shows them."""

    title: str
    count: str
    rows: Sequence[search_page.Row]
    list_url: str


@dataclass(slots=True)
class Progress(WorkProgress):
    """How far it is, and what it has found."""

    query: str = ""
    tables: Sequence[MatchingJobs] = ()
    newer: str = ""  # addresses of pages of the result
    older: str = ""
    gone: str = ""  # how many of the jobs of this page are gone


def progress_in_list(request: HttpRequest, search: JobSearch) -> Progress:
    """The part of the time that is searched, and the number of matches."""
    done, whole = 0.0, 1.0 if search.state in ACTIVE else None
    back_to = time_of(search.place)
    if back_to is not None and search.oldest is not None:
        done = (search.created_at - back_to).total_seconds()
        whole = (search.created_at - search.oldest).total_seconds()
        if whole <= 0:
            done = whole = 1.0
    return Progress(search, done, whole, sentence=matches_text(request, search))


def matches_text(request: HttpRequest, search: JobSearch) -> str:
    """ "12 found among 1,200,000 jobs", of those that this user may see."""
    tables = _tables(request, search)
    matched = sum(search.matched.get(table.value, 0) for _model, table in tables)
    values = {
        "found": numbers.number(matched),
        "examined": numbers.number(search.examined),
    }
    text = ngettext(
        "%(found)s found among %(examined)s job",
        "%(found)s found among %(examined)s jobs",
        search.examined,
    )
    return text % values


def is_visible(request: HttpRequest, search: JobSearch) -> bool:
    """True if this user might have made this search: who may not see a value must not
    learn from the result where it is."""
    selections = selections_of(search)
    if not _tables(request, search):
        return False
    try:
        for selection in selections.values():
            check_data(request, selection)
    except SearchError:
        return False
    return True


def selections_of(search: JobSearch) -> dict[Table, Selection]:
    """Its selection by table; nothing if that is not readable."""
    try:
        return {
            Table(name): Selection.from_json(one)
            for name, one in search.selections.items()
        }
    except (AttributeError, SelectionError, ValueError):
        return {}


def progress_of(request: HttpRequest, site: AdminSite, search: JobSearch) -> Progress:
    """Read it; of the jobs only those that this user may see."""
    progress = progress_in_list(request, search)
    text = request.GET.get(PAGE, "")
    page = int(text) if text.isdecimal() and len(text) < 4 else 0
    noted = _noted(request, search)
    shown = noted[page * ROWS : (page + 1) * ROWS]
    tables, gone = _matching(request, site, search, shown)
    back_to = time_of(search.place)
    facts: list[tuple[Any, Any]] = [
        (_("By"), display.visible(search.created_by) or display.NOTHING),
        (_("Started"), display.full_moment(search.created_at)),
    ]
    if back_to is not None and search.state != WorkState.DONE:
        facts.append((_("Searched back to"), display.exact_moment(back_to)))
    facts += progress.times()
    facts.append((_("Kept until"), display.full_moment(search.created_at + RETENTION)))
    progress.facts = facts
    progress.query = display.visible(search.query)
    progress.tables, progress.gone = tables, _gone_text(gone)
    progress.newer = f"?{PAGE}={page - 1}" if page else ""
    progress.older = f"?{PAGE}={page + 1}" if noted[(page + 1) * ROWS :] else ""
    progress.is_busy, progress.is_final = progress.is_active, not progress.is_active
    if progress.is_active:
        progress.warn(request)
    return progress


def _tables(
    request: HttpRequest, search: JobSearch
) -> list[tuple[type[models.Model], Table]]:
    """Those of the searched tables that this user may see."""
    return [
        (model, table)
        for model, table in search_page.TABLES
        if table in selections_of(search) and may_view(request, model)
    ]


def _noted(request: HttpRequest, search: JobSearch) -> list[UUID]:
    """The jobs that were noted, queued ones first."""
    return [
        UUID(id)
        for _model, table in _tables(request, search)
        for id in search.newest.get(table.value, ())
    ]


def _matching(
    request: HttpRequest, site: AdminSite, search: JobSearch, ids: Sequence[UUID]
) -> tuple[list[MatchingJobs], int]:
    """These jobs where they are now, and how many are gone."""
    tables, left = [], set(ids)
    for model, table in _tables(request, search):
        owner: Any = site._registry[model]
        jobs = model._default_manager.only(*owner.list_columns).in_bulk(list(left))
        left -= jobs.keys()
        count = search.matched.get(table.value, 0)
        if not jobs and not count:
            continue
        rows = owner.annotate(request, [jobs[id] for id in ids if id in jobs])
        address = f"{owner.list_url}?{urlencode({SEARCH_VAR: search.query})}"
        tables.append(
            MatchingJobs(
                title=str(model._meta.verbose_name_plural).capitalize(),
                count=numbers.number(count),
                rows=[search_page.row_of(owner, job, table) for job in rows],
                list_url=address,
            )
        )
    return tables, len(left)


def _gone_text(count: int) -> str:
    if not count:
        return ""
    text = ngettext(
        "%(count)s of these jobs is gone, or you may not see it.",
        "%(count)s of these jobs are gone, or you may not see them.",
        count,
    )
    return text % {"count": numbers.number(count)}


LONGEST: Final = 120  # characters of a search in the list


class JobSearchAdmin(WorkAdmin):
    """Workers carry them on; here they are watched, stopped and read."""

    change_form_template = "admin/jobqueue_console/job_search.html"
    page_actions: ClassVar[Sequence[Action]] = (Start(), RESUME, RUN_STEP, STOP)
    progress_in_list = staticmethod(progress_in_list)
    list_display = ("what", "state_pill", "result", "by", "created")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Of one: also the right to make it."""
        may_view: bool = super().has_view_permission(request, obj)
        return may_view and (obj is None or is_visible(request, obj))

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """The search term, for users who may search for it."""
        for row in rows:
            row.is_visible = is_visible(request, row)
        return super().annotate(request, rows)

    def progress_of(self, request: HttpRequest, row: Any) -> Progress:
        """With the jobs that it has found."""
        return progress_of(request, self.admin_site, row)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Offer to search again."""
        context["again"] = search_page.url_of(context["original"].query)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("search"))
    def what(self, search: Any) -> Any:
        """The search as typed, and the short id."""
        text = gettext("a value that you may not see")
        if search.is_visible:
            shown = display.visible(search.query)
            text = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
        return display.lines([text, display.id_cell(search.pk)])

    @column(description=_("found"))
    def result(self, search: Any) -> Any:
        """How many jobs were found."""
        if not search.is_visible:
            return display.NOTHING
        return search.progress.cell()
