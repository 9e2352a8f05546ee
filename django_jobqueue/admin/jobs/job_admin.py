"""The base of the pages of queued and of archived jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.query import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.data_summaries import summary_cell
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.jobs.export import Export
from django_jobqueue.admin.jobs.job_page import JobPage
from django_jobqueue.admin.jobs.job_search import understood
from django_jobqueue.admin.lists.change_list import POSITIONS, JobChangeList
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.admin.lists.selected import Spec, matching, selected
from django_jobqueue.admin.parts import catalogue, display, tags
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.models.matching_ids import matching_ids
from django_jobqueue.search import IdSearch, SearchError
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.text import numbers


class JobAdmin(ActionAdmin):
    """Pages of jobs: no form changes one, only actions do."""

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": [
                "django_jobqueue/traceback.css",
                "django_jobqueue/job.css",
                "django_jobqueue/lists.css",
            ]
        }

        js: ClassVar[Sequence[Any]] = [Script("django_jobqueue/search.js", defer=True)]

    change_form_template = "admin/jobqueue/job.html"
    list_display_links = ("job",)
    search_fields = ("id",)  # shows the box; the search is our own
    search_help_text = _(
        "The id of a job, or its beginning; a job type; words of an error message; or "
        "terms such as error:TimeoutError attempts:>3 data.order_id:7."
    )
    key_columns: ClassVar[Sequence[str]]
    large_columns: ClassVar[Sequence[str]] = ("data",)
    waits_for_rows: ClassVar[bool] = False  # what is claimed this moment is left alone
    list_columns: ClassVar[Sequence[str]]  # all that a list reads
    table: ClassVar[Table]
    elsewhere: ClassVar[type[models.Model]]  # where a job that is not here may be
    elsewhere_note: ClassVar[Any]

    @property
    def key(self) -> Key:
        """The order of the list, newest first."""
        return Key(self.model, self.key_columns)

    def key_of(self, selection: Selection) -> Key:
        """The order of a list of these jobs."""
        return self.key

    @property
    def ordering(self) -> list[str]:  # type: ignore[override]
        """Newest first."""
        return self.key.order

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """A list that is paged by its key."""
        return JobChangeList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Tell the template where the list is a file."""
        query = request.GET.copy()
        for name in (*POSITIONS, "e"):
            query.pop(name, None)
        asked = f"?{query.urlencode()}" if query else ""
        exports = [
            (one.label, f"{self.address_of(one)}{asked}")
            for one in self.page_actions
            if isinstance(one, Export)
        ]
        extra = {"exports": exports, **(extra_context or {})}
        return super().changelist_view(request, extra)

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Lead on from a job that moves while its page is made."""
        try:
            return super().change_view(request, object_id, *args, **kwargs)
        except self.model.DoesNotExist:
            return self.gone(request, object_id)

    def perform(
        self, request: HttpRequest, object_id: Any = None, *, action: Action
    ) -> HttpResponse:
        """The same for a job that moves before an action has read its data."""
        try:
            return super().perform(request, object_id, action=action)
        except self.model.DoesNotExist:
            return self.gone(request, str(object_id))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without what may be large; a job's page reads it by itself."""
        return super().get_queryset(request).defer(*self.large_columns)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The jobs of a search, for callers without a list."""
        return matching(queryset, self.selection(request, (), search_term)), False

    def selection(
        self, request: HttpRequest, specs: Iterable[Spec], query: str
    ) -> Selection:
        """The selection that these filters and this search make together."""
        selection, problems = selected(self.table, specs)
        for problem in problems:
            self._show_message(request, problem, messages.ERROR)
        return self._searched(request, selection, query) if query.strip() else selection

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        job = context["original"]
        context["page"] = self.page(request, job)
        context["subtitle"] = display.job_name(job)
        return super().render_change_form(request, context, *args, **kwargs)

    def page(self, request: HttpRequest, job: Any) -> JobPage:
        """The contents of the page of this job."""
        raise NotImplementedError

    @column(description=_("job"))
    def job(self, job: Any) -> Any:
        """The job type, what its data say, the id in short, and the tags."""
        name = display.breakable(job.job_type_id)
        about = summary_cell(job.row_context.summary)
        id = display.id_cell(job.pk)
        return display.lines([name, *about, id, *tags.tags_cell(job)])

    @column(description=_("queue"))
    def queue_name(self, job: Any) -> str:
        """The name of the queue."""
        return display.visible(job.queue)

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """As for a job's page: lead to where the job is now."""
        return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """A link to a job that moved meanwhile leads to where it is now."""
        id = self._id_of(unquote(object_id))
        if id is not None and self._is_elsewhere(request, id):
            self.message_user(request, str(self.elsewhere_note), messages.INFO)
            name = str(self.elsewhere._meta.model_name)
            return HttpResponseRedirect(display.url_of(name, id))
        response: HttpResponse = super()._get_obj_does_not_exist_redirect(  # type: ignore[misc]
            request, opts, object_id
        )
        return response

    def _is_elsewhere(self, request: HttpRequest, id: UUID) -> bool:
        return (
            may_view(request, self.elsewhere)
            and self.elsewhere._default_manager.filter(pk=id).exists()
        )

    def _point_elsewhere(self, request: HttpRequest, id: UUID) -> None:
        if self._is_elsewhere(request, id):
            name = str(self.elsewhere._meta.model_name)
            there = display.link(name, id, display.short_id(id))
            note = format_html("{} {}", self.elsewhere_note, there)
            self._show_message(request, note, messages.INFO)

    def _searched(
        self, request: HttpRequest, selection: Selection, query: str
    ) -> Selection:
        """The selection narrowed by the search; empty, with a message, if the search
        is not understood."""
        try:
            selection, ids = understood(request, selection, query)
        except SearchError as error:
            self._show_message(request, _elsewhere(error, query), messages.ERROR)
            return selection.none()
        return selection.also(Term("id", self._ids(request, ids))) if ids else selection

    def _ids(
        self, request: HttpRequest, searches: Sequence[IdSearch]
    ) -> tuple[UUID, ...]:
        """The ids of a page's worth of jobs that have one of these."""
        if len(searches) == 1 and searches[0].is_exact:
            self._point_elsewhere(request, searches[0].first)
        ids = matching_ids(self.get_queryset(request), searches, self.list_per_page + 1)
        if len(ids) > self.list_per_page:
            more = gettext("Several jobs begin like this. Give more of the id.")
            self._show_message(request, more, messages.INFO)
        return ids[: self.list_per_page]

    def _id_of(self, text: str) -> UUID | None:
        try:
            id: UUID | None = self.opts.pk.to_python(text)
        except ValidationError:
            return None
        return id

    def _show_message(self, request: HttpRequest, text: str, level: int) -> None:
        """Once a page; an action makes the list a second time."""
        if request.method == "GET":
            self.message_user(request, text, level)


def _elsewhere(error: SearchError, query: str) -> Any:
    """The error of a search, and a link to the page that may understand it."""
    link = gettext("Search everywhere for “%(text)s”")
    return format_html(
        '{} <a href="{}">{}</a>',
        display.visible(str(error)),
        search_page.url_of(query),
        link % {"text": display.visible(query[:50])},
    )


def tries_of(job: Any, job_type: JobType | None) -> Any:
    """Attempts, of how many, and crashes. An archived job says what its limit was, if
    it is known: that of its type may be another one by now."""
    if isinstance(job, QueuedJob):
        text = display.attempts(job.attempts, catalogue.max_attempts(job, job_type))
    elif job.effective_max_attempts is not None:
        text = display.attempts(job.attempts, job.effective_max_attempts)
    else:
        text = numbers.number(job.attempts)
    if not job.crashes:
        return display.short(text)
    crashes = ngettext("%(count)s crash", "%(count)s crashes", job.crashes)
    return format_html(
        '{} <span class="jq-quiet">({})</span>',
        display.short(text),
        crashes % {"count": numbers.number(job.crashes)},
    )


def type_link(request: HttpRequest, job: Any) -> Any:
    """The job type, as a link where the user may follow it."""
    name = display.breakable(job.job_type_id)
    known = catalogue.job_type(request, job.job_type_id) is not None
    if known and may_view(request, JobType):
        return display.link("jobtype", job.job_type_id, name)
    return name
