"""Personal data: the record of erasures, and the pages of drafts and erasures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.erasures.erasure_actions import (
    FIND,
    RESUME,
    RUN_STEP,
    STOP,
    Delete,
    Erase,
)
from django_jobqueue.admin.erasures.erasure_page import progress_in_list, progress_of
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.models import Erasure
from django_jobqueue.text import numbers


class ErasureAdmin(ActionAdmin):
    """What was erased, by whom and when; never the values."""

    change_form_template = "admin/jobqueue/erasure.html"
    page_actions: ClassVar[Sequence[Action]] = (
        FIND,
        Erase(),
        Delete(),
        RESUME,
        RUN_STEP,
        STOP,
    )
    key_in_path = "<uuid:object_id>"
    ordering = ("-created_at", "-id")
    list_display = ("what", "state_pill", "rows", "by", "created")
    list_display_links = ("what",)

    class Media:
        css = {"all": ["django_jobqueue/bulk.css"]}  # noqa: RUF012

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer to find a value to users who may."""
        extra = {"find": self.address_of(FIND) if self.may_do(request, FIND) else ""}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        erasure = context["original"]
        context["progress"] = erasure.progress = progress_of(request, erasure)
        context["subtitle"] = display.short_id(erasure.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def not_posted(self, row: Any) -> HttpResponse:
        """A button that was pressed shows the page."""
        return self.to(row)

    @column(description=_("act"))
    def what(self, erasure: Erasure) -> Any:
        """What was done, and the short id."""
        label = erasure.get_act_display() or _("search")
        return display.lines([label, display.id_cell(erasure.pk)])

    @column(description=_("state"))
    def state_pill(self, erasure: Erasure) -> Any:
        """The state, as a pill."""
        return progress_in_list(erasure).state

    @column(description=_("rows"))
    def rows(self, erasure: Erasure) -> str:
        """How many were changed; of a draft, how many hold the value."""
        if erasure.act:
            return numbers.number(sum(erasure.changed.values()))
        return numbers.number(sum(one["rows"] for one in erasure.counted.values()))

    @column(description=_("by"))
    def by(self, erasure: Erasure) -> str:
        """Who asked for it."""
        return display.visible(erasure.created_by) or display.NOTHING

    @column(description=_("created"))
    def created(self, erasure: Erasure) -> Any:
        """When."""
        return display.moment(erasure.created_at)
