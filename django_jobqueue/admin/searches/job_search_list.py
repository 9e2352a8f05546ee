"""Searches through all jobs: the list, and the page of each with its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.searches.job_search_actions import (
    RESUME,
    RUN_STEP,
    STOP,
    Start,
)
from django_jobqueue.admin.searches.job_search_page import (
    is_visible,
    progress_in_list,
    progress_of,
)
from django_jobqueue.models import JobSearch

LONGEST: Final = 120  # characters of a search in the list


class JobSearchAdmin(ActionAdmin):
    """Workers carry them on; here they are watched, stopped and read."""

    change_form_template = "admin/jobqueue/job_search.html"
    page_actions: ClassVar[Sequence[Action]] = (Start(), RESUME, RUN_STEP, STOP)
    key_in_path = "<uuid:object_id>"
    ordering = ("-created_at", "-id")
    list_display = ("what", "state_pill", "result", "by", "created")
    list_display_links = ("what",)

    class Media:
        css = {"all": ["django_jobqueue/bulk.css"]}  # noqa: RUF012

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Of one: also the right to make it."""
        may_view: bool = super().has_view_permission(request, obj)
        return may_view and (obj is None or is_visible(request, obj))

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """What was searched for, for those who might have."""
        for row in rows:
            row.is_visible = is_visible(request, row)
            row.progress = progress_in_list(request, row)
        return rows

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        search = context["original"]
        progress = progress_of(request, self.admin_site, search)
        context["progress"] = search.progress = progress
        context["again"] = search_page.url_of(search.query)
        context["subtitle"] = display.short_id(search.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def not_posted(self, row: Any) -> HttpResponse:
        """A button that was pressed shows the page."""
        return self.to(row)

    @column(description=_("search"))
    def what(self, search: Any) -> Any:
        """What was typed, and the short id."""
        text = gettext("a value that you may not see")
        if search.is_visible:
            shown = display.visible(search.query)
            text = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
        return display.lines([text, display.id_cell(search.pk)])

    @column(description=_("state"))
    def state_pill(self, search: Any) -> Any:
        """The state, as a pill."""
        return search.progress.state

    @column(description=_("found"))
    def result(self, search: Any) -> Any:
        """How many jobs were found."""
        if not search.is_visible:
            return display.NOTHING
        return search.progress.cell()

    @column(description=_("by"))
    def by(self, search: JobSearch) -> str:
        """Who started it."""
        return display.visible(search.created_by) or display.NOTHING

    @column(description=_("created"))
    def created(self, search: JobSearch) -> Any:
        """When."""
        return display.moment(search.created_at)
