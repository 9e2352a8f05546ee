"""Job types: the list, the effective policy with its sources, overrides, pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import rooms
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.row_marks import changed_meanwhile, marks_for
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.jobs.new_job import NewJob
from django_jobqueue.admin.jobs.related_jobs import named_followers
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import catalogue, depths, display, policies
from django_jobqueue.admin.parts.last_day import finished_cell, last_day
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.admin.parts.run_times import at_most
from django_jobqueue.admin.types import overrides
from django_jobqueue.admin.types.job_type_page import (
    handler_cell,
    page_of,
    running_text,
)
from django_jobqueue.admin.types.pause import Pause, Resume
from django_jobqueue.admin.types.release_comparison import CompareReleases
from django_jobqueue.conf import conf
from django_jobqueue.models import (
    FailureGroup,
    JobType,
)
from django_jobqueue.search.type_names import types_like
from django_jobqueue.stats.totals import Line
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.text import numbers

MOST_NAMES: Final = 20  # that are suggested

CLEAR = overrides.ClearOverrides()


@dataclass(slots=True)
class RowContext:
    """Facts about a job type that are not in its row."""

    depth: Depth
    day: Line  # what happened in the last 24 h
    handler: Any


class JobTypeAdmin(ActionAdmin):
    """Job types: declared in code, overridden and paused by operators."""

    change_form_template = "admin/jobqueue/job_type.html"
    editable = True
    form = overrides.OverridesForm
    fieldsets = ((None, {"fields": overrides.OverridesForm.Meta.fields}),)
    page_actions: ClassVar[Sequence[Action]] = (
        Pause(),
        Resume(),
        CLEAR,
        NewJob(),
        CompareReleases(),
    )
    ordering = ("name",)
    search_fields = ("name",)
    list_per_page = 50
    list_display = (
        "type_name",
        "state",
        "queue_name",
        "ready",
        "running",
        "finished",
        "run_time",
        "known",
    )
    list_display_links = ("type_name",)

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": [
                "django_jobqueue/overview.css",
                "django_jobqueue/job.css",
                "django_jobqueue/machines.css",
            ]
        }

    def get_urls(self) -> list[URLPattern]:
        """Also the names, for whoever types one."""
        names = self.admin_site.admin_view(self.names)
        return [
            path("names/", names, name="jobqueue_jobtype_names"),
            *super().get_urls(),
        ]

    def names(self, request: HttpRequest) -> JsonResponse:
        """The first names that have a text, for who sees a list of theirs."""
        lists = (
            model
            for model in rooms.models()
            if model in (JobType, FailureGroup)
            or any(one.related_model is JobType for one in model._meta.fields)
        )
        if not any(may_view(request, model) for model in lists):
            raise PermissionDenied
        text = request.GET.get("q", "").strip()
        matching = types_like(text, catalogue.type_names(request))
        return JsonResponse({"names": matching[:MOST_NAMES]})

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Depths, roll-ups and workers, each read once for all."""
        by_type = depths.by_job_type(request)
        past = last_day(row.name for row in rows)
        for row in rows:
            row.row_context = RowContext(
                depth=by_type.get(row.name) or Depth("", row.name),
                day=past.get(row.name) or Line(row.name),
                handler=handler_cell(request, row, by_type.get(row.name)),
            )
        return rows

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Save nothing over what others have saved since the page was made."""
        if request.method != "POST" or not self.has_change_permission(request):
            return super().change_view(request, object_id, *args, **kwargs)
        with transaction.atomic(using=conf.database):
            row = self.get_object(request, unquote(object_id))
            values = partial(CLEAR.replaced, request)
            if row is not None and not self.held(request, [row], values):
                self.message_user(request, changed_meanwhile(), messages.ERROR)
                return HttpResponseRedirect(request.get_full_path())
            return super().change_view(request, object_id, *args, **kwargs)

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Save the changed overrides and nothing else: a deployment or a pause may
        have changed the rest since the page was opened."""
        form.override(request.user.get_username())

    def response_post_save_change(
        self, request: HttpRequest, obj: Any
    ) -> HttpResponseRedirect:
        """Stay on the page, which shows what is in force now."""
        return HttpResponseRedirect(request.get_full_path())

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """The old and the new value of each override."""
        return overrides.entry_of(form.overridden) if form.overridden else ""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """A save that changed nothing is not logged."""
        return super().log_change(request, obj, message) if message else None

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        job_type = context["original"]
        form = context["adminform"].form
        context["show_save_and_continue"] = False  # a save stays on the page
        context["state"] = state_of(job_type)
        values = partial(CLEAR.replaced, request)
        context["marks"] = marks_for(form, [job_type], values)
        depth = depths.of_job_type(job_type.name)
        context["summary"] = _summary(request, job_type, depth)
        context["page"] = page_of(request, job_type, depth)
        context["policy"] = self._policy(request, job_type, form)
        return super().render_change_form(request, context, *args, **kwargs)

    def _policy(
        self, request: HttpRequest, job_type: JobType, form: Any
    ) -> list[dict[str, Any]]:
        """Each line with its field, its last log entry, and a link that clears it."""
        changes = overrides.last_changes(job_type)
        may_clear = self.may_do(request, CLEAR)
        return [
            {
                "row": row,
                "field": form[row.name] if row.name in form.fields else None,
                "change": changes.get(row.option) if row.is_overridden else None,
                "clear": self.address_of(
                    CLEAR, job_type, then=request.path, override=row.option
                )
                if may_clear and row.override != display.NOTHING
                else "",
            }
            for row in policies.rows_of(job_type)
        ]

    @column(description=_("name"))
    def type_name(self, job_type: JobType) -> Any:
        """The name."""
        return display.breakable(job_type.name)

    @column(description=_("state"))
    def state(self, job_type: JobType) -> Any:
        """Its pause, and the number of its overrides."""
        count = len(policies.overridden(job_type))
        text = ngettext("%(count)s override", "%(count)s overrides", count)
        texts = [text % {"count": numbers.number(count)}] if count else []
        return display.lines([state_of(job_type), *texts])

    @column(description=_("queue"))
    def queue_name(self, job_type: JobType) -> str:
        """The default queue of its jobs."""
        return display.visible(job_type.queue)

    @column(description=_("ready"))
    def ready(self, job_type: Any) -> Any:
        """The number of ready jobs, and how long the oldest has waited."""
        return depths.ready_cell(job_type.row_context.depth)

    @column(description=_("running"))
    def running(self, job_type: Any) -> str:
        """The number of running jobs, and the limit."""
        return running_text(job_type.row_context.depth, job_type)

    @column(description=_("finished, last 24 h"))
    def finished(self, job_type: Any) -> Any:
        """The number of finished jobs, and the share of failed ones."""
        return finished_cell(job_type.row_context.day)

    @column(description=_("run p95, last 24 h"))
    def run_time(self, job_type: Any) -> str:
        """95 % of the attempts took no longer."""
        return at_most(job_type.row_context.day.run_time(0.95))

    @column(description=_("handler"))
    def known(self, job_type: Any) -> Any:
        """The workers that have a handler for it."""
        return job_type.row_context.handler


def state_of(row: Any) -> Any:
    """The pause of a job type or queue."""
    if not catalogue.is_paused(row):
        return display.pill("open", gettext("active"))
    if row.resume_at is None:
        return display.pill("paused", gettext("paused"))
    text = gettext("paused until %(time)s") % {"time": display.exact(row.resume_at)}
    return display.pill("paused", text)


def pause_of(row: Any) -> list[tuple[Any, Any]]:
    """The user, time and reason of the pause of a job type or queue."""
    if not catalogue.is_paused(row):
        return []
    return [
        (_("Paused by"), display.visible(row.paused_by) or display.NOTHING),
        (_("Paused"), display.full_moment(row.paused_at)),
        (_("Reason"), linked(display.visible(row.paused_reason)) or display.NOTHING),
    ]


def _summary(
    request: HttpRequest, job_type: JobType, depth: Depth
) -> list[tuple[Any, Any]]:
    handler = display.breakable(job_type.handler) if job_type.handler else ""
    return [
        *pause_of(job_type),
        (_("Handler"), handler or display.NOTHING),
        (_("Handled by"), handler_cell(request, job_type, depth)),
        (_("Description"), display.visible(job_type.description) or display.NOTHING),
        (_("Queue"), display.visible(job_type.queue)),
        (_("Delivery"), job_type.get_delivery_display()),
        (_("Backoff"), display.visible(job_type.backoff)),
        (
            _("Retry rules"),
            display.lines(policies.retry_lines(job_type)) or display.NOTHING,
        ),
        (_("Atomic"), gettext("yes") if job_type.atomic else gettext("no")),
        (_("Expires in"), numbers.length(job_type.expires_in)),
        (_("Max crashes"), job_type.max_crashes),
        (_("Sensitive"), display.names(job_type.sensitive) or display.NOTHING),
        (_("Unique by"), display.visible(job_type.unique_by) or display.NOTHING),
        *named_followers(request, job_type.followers),
        (_("Registered"), display.full_moment(job_type.declared_at)),
    ]
