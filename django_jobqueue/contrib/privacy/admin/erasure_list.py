"""Personal data: the record of erasures, and the pages of drafts and erasures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.work.work_admin import WorkAdmin
from django_jobqueue.contrib.privacy.admin.erasure_actions import (
    FIND,
    RESUME,
    RUN_STEP,
    STOP,
    Delete,
    Erase,
)
from django_jobqueue.contrib.privacy.admin.erasure_page import (
    progress_in_list,
    progress_of,
)
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.text import numbers


class ErasureAdmin(WorkAdmin):
    """What was erased, by whom and when; never the values."""

    change_form_template = "admin/jobqueue_privacy/erasure.html"
    page_actions: ClassVar[Sequence[Action]] = (
        FIND,
        Erase(),
        Delete(),
        RESUME,
        RUN_STEP,
        STOP,
    )
    progress_in_list = staticmethod(progress_in_list)
    progress_of = staticmethod(progress_of)
    list_display = ("what", "state_pill", "rows", "by", "created")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer to find a value to users who may."""
        extra = {"find": self.address_of(FIND) if self.may_do(request, FIND) else ""}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    @column(description=_("act"))
    def what(self, erasure: Erasure) -> Any:
        """What was done, and the short id."""
        label = erasure.get_act_display() or _("search")
        return display.lines([label, display.id_cell(erasure.pk)])

    @column(description=_("rows"))
    def rows(self, erasure: Erasure) -> str:
        """How many were changed; of a draft, how many hold the value."""
        if erasure.act:
            return numbers.number(sum(erasure.changed.values()))
        return numbers.number(sum(one["rows"] for one in erasure.counted.values()))
