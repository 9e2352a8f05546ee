"""The list and the pages of work in chunks."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display


class WorkAdmin(ActionAdmin):
    """Jobs of the queue do the work; here it is watched and steered."""

    key_in_path = "<uuid:object_id>"
    ordering = ("-created_at", "-id")
    list_display_links = ("what",)

    class Media:
        css = {"all": ["django_jobqueue/bulk.css"]}  # noqa: RUF012

    # Functions of a request and a row, which return a WorkProgress.
    progress_in_list: Any
    progress_of: Any  # all of its page

    def title_of(self, row: Any) -> str:
        """The title of its page."""
        return display.short_id(row.pk)

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """How far each is."""
        for row in rows:
            row.progress = self.progress_in_list(request, row)
        return rows

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        row = context["original"]
        context["progress"] = row.progress = self.progress_of(request, row)
        context["subtitle"] = self.title_of(row)
        return super().render_change_form(request, context, *args, **kwargs)

    def not_posted(self, row: Any) -> HttpResponse:
        """An action that only posts shows the page."""
        return self.to(row)

    @column(description=_("state"))
    def state_pill(self, row: Any) -> Any:
        """The state, as a pill."""
        return row.progress.state

    @column(description=_("progress"))
    def progress(self, row: Any) -> Any:
        """How much is done, of how much."""
        return row.progress.cell()

    @column(description=_("by"))
    def by(self, row: Any) -> str:
        """The user who began it."""
        return display.visible(row.created_by) or display.NOTHING

    @column(description=_("created"))
    def created(self, row: Any) -> Any:
        """When that was."""
        return display.moment(row.created_at)
