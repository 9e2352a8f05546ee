"""Searches through all jobs: the list, and the page of each with its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.work.work_admin import WorkAdmin
from django_jobqueue.contrib.console.admin.job_search_actions import (
    RESUME,
    RUN_STEP,
    STOP,
    Start,
)
from django_jobqueue.contrib.console.admin.job_search_page import (
    Progress,
    is_visible,
    progress_in_list,
    progress_of,
)

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
        """What was searched for, for those who might have."""
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
        """What was typed, and the short id."""
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
