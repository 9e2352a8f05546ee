"""Queues: those in use, and those that somebody paused. Without a row a queue is
open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib.admin import register
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import may
from django_jobqueue.admin.lists.change_list import PlainChangeList
from django_jobqueue.admin.parts import catalogue, depths, display
from django_jobqueue.admin.parts.columns import column
from django_jobqueue.admin.parts.lines import finished_cell, last_day
from django_jobqueue.admin.types.job_types import pause_of, state_of
from django_jobqueue.admin.types.pause import PauseForm, PauseQueue, ResumeQueue
from django_jobqueue.admin.types.queue_page import page_of, served_cell
from django_jobqueue.admin.verbs.actions import MOST, OperatedAdmin
from django_jobqueue.admin.verbs.verb import Question, Verb
from django_jobqueue.admin.workers.fleet import fleet
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.models import Queue
from django_jobqueue.stats.lines import Line
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.text import numbers


@dataclass(slots=True)
class RowContext:
    """What the list knows beside the row of a queue."""

    depth: Depth
    day: Line  # what happened in the last 24 h
    served: Any


class PauseByNameForm(PauseForm):
    """Which queue; perhaps nobody uses it yet."""

    name = forms.CharField(label=_("Queue"), max_length=100)
    field_order = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = ", ".join(catalogue.queue_names(self.request))
        text = gettext("Known queues: %(names)s.") % {"names": known}
        self.fields["name"].help_text = text if known else ""

    def clean_name(self) -> str:
        """A name that a queue can have."""
        name: str = self.cleaned_data["name"]
        if queue_problem(name):
            raise ValidationError(
                _("A queue's name has no space, comma or control character.")
            )
        return name


class QueueList(PlainChangeList):
    """The queues that have a row, and those that are in use without one."""

    def find_page(self, request: HttpRequest) -> None:
        """All of them, by name: there are few."""
        super().find_page(request)
        rows = {queue.name: queue for queue in self.result_list}
        names = sorted({*rows, *known_names(request)})[: self.list_per_page]
        self.result_list = [rows.get(name) or open_queue(name) for name in names]
        self.result_count = len(names)


@register(Queue)
class QueueAdmin(OperatedAdmin):
    """Queues are paused and resumed, and nothing else."""

    change_form_template = "admin/jobqueue/queue.html"
    verbs: ClassVar[Sequence[Verb]] = (PauseQueue(), ResumeQueue())
    ordering = ("name",)
    list_per_page = MOST
    list_display = (
        "queue_name",
        "state",
        "ready",
        "later",
        "running",
        "finished",
        "served",
        "pause_said",
    )
    list_display_links = ("queue_name",)

    class Media:
        css: ClassVar[dict[str, Any]] = {"all": ["django_jobqueue/machines.css"]}

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause and resume."""
        return may(request, "pause_queue")

    def get_urls(self) -> list[URLPattern]:
        """Also a page that pauses a queue by its name."""
        own = path(
            "pause-by-name/",
            self.admin_site.admin_view(self.pause_by_name),
            name="jobqueue_queue_pause_by_name",
        )
        return [own, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Also queues without a row."""
        return QueueList

    def get_object(self, request: HttpRequest, object_id: str, *args: Any) -> Any:
        """The queue with this name, also one that is in use without a row."""
        found = super().get_object(request, object_id, *args)
        if found is None and object_id in known_names(request):
            return open_queue(object_id)
        return found

    def rows_of(self, request: HttpRequest, keys: Sequence[Any]) -> list[Any]:
        """The selected queues, also those in use without a row."""
        rows = {queue.name: queue for queue in super().rows_of(request, keys)}
        known = {*rows, *known_names(request)}
        names = [key for key in dict.fromkeys(keys) if key in known]
        return [rows.get(name) or open_queue(name) for name in names]

    def select(
        self, request: HttpRequest, verb: Verb, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """What is ticked; the rows of the table are not all that can be."""
        rows = self.rows_of(request, request.POST.getlist(ACTION_CHECKBOX_NAME))
        return self._page(request, verb, rows, self._form(request, verb, rows))

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Depths, roll-ups and workers, each read once for all."""
        found = depths.by_queue(request)
        past = last_day(lambda recent: recent.queue)
        for row in rows:
            row.row_context = RowContext(
                depth=found.get(row.name) or Depth(row.name, ""),
                day=past.get(row.name) or Line(row.name),
                served=served_cell(request, row.name),
            )
        return rows

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With a link to that page for those who may."""
        extra = {"may_pause": self.has_pause_permission(request)}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def pause_by_name(self, request: HttpRequest) -> HttpResponse:
        """Pause a queue that nobody uses yet."""
        (pause, _resume) = self.verbs
        if not self.may_do(request, pause):
            raise PermissionDenied
        data = request.POST if request.method == "POST" else None
        form = PauseByNameForm(data, request=request, rows=())
        there = reverse(f"{self.admin_site.name}:jobqueue_queue_changelist")
        if form.is_valid():
            rows = [open_queue(form.cleaned_data["name"])]
            self._do(request, pause, rows, form.cleaned_data)
            return HttpResponseRedirect(there)
        question = Question(gettext("Pause a queue"))
        return self.question_page(request, pause, question, form, {"action": ""})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        queue = context["original"]
        context["state"] = state_of(queue)
        context["summary"] = _summary(request, queue)
        context["page"] = page_of(request, queue)
        context["buttons"] = self.buttons(request, queue)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("name"))
    def queue_name(self, queue: Queue) -> str:
        """The name."""
        return display.visible(queue.name)

    @column(description=_("state"))
    def state(self, queue: Queue) -> Any:
        """Whether it is claimed from."""
        return state_of(queue)

    @column(description=_("ready"))
    def ready(self, queue: Any) -> Any:
        """How many could run now, and how long the oldest has waited."""
        return depths.ready_cell(queue.row_context.depth)

    @column(description=_("later"))
    def later(self, queue: Any) -> str:
        """How many wait for their time."""
        return depths.count_text(queue.row_context.depth.later)

    @column(description=_("running"))
    def running(self, queue: Any) -> str:
        """How many run."""
        return numbers.number(queue.row_context.depth.running)

    @column(description=_("finished, last 24 h"))
    def finished(self, queue: Any) -> Any:
        """How many ended, and the share of those that failed."""
        return finished_cell(queue.row_context.day)

    @column(description=_("workers"))
    def served(self, queue: Any) -> Any:
        """Who claims from it."""
        return queue.row_context.served

    @column(description=_("paused"))
    def pause_said(self, queue: Queue) -> Any:
        """Why, by whom and since when."""
        if not catalogue.is_paused(queue):
            return display.NOTHING
        return display.lines(
            [
                display.visible(queue.paused_reason) or display.NOTHING,
                display.visible(queue.paused_by),
                display.moment(queue.paused_at),
            ]
        )


def known_names(request: HttpRequest) -> set[str]:
    """The queues that have a row, that job types say, that jobs are in, or that
    workers name."""
    return {
        *catalogue.queue_names(request),
        *depths.by_queue(request),
        *fleet(request).queues,
    }


def open_queue(name: str) -> Queue:
    """A queue without a row: nobody ever paused it."""
    return Queue(name=name, paused=False, paused_by="", paused_reason="")


def _summary(request: HttpRequest, queue: Queue) -> list[tuple[Any, Any]]:
    depth = depths.by_queue(request).get(queue.name) or Depth(queue.name, "")
    return [
        *pause_of(queue),
        (_("Ready"), depths.count_text(depth.ready)),
        (_("Oldest ready"), depths.age_text(depth.oldest)),
        (_("Later"), depths.count_text(depth.later)),
        (_("Running"), numbers.number(depth.running)),
        (_("Served by"), served_cell(request, queue.name)),
    ]
