"""Queues: the list, the page, and pauses. A queue without a row is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.main import ChangeList
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import MOST, ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.lists.change_list import PlainChangeList
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import catalogue, depths, display
from django_jobqueue.admin.parts.curves import Curves, curves
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.admin.parts.last_day import (
    finished_cell,
    last_day_of_queues,
    last_day_of_types,
)
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.admin.types.job_types import pause_of, state_of
from django_jobqueue.admin.types.pause import (
    Pause,
    PauseQueueByName,
    Resume,
    open_queue,
)
from django_jobqueue.admin.workers.fleet import fleet, worker_links, workers_cell
from django_jobqueue.models import ArchivedJob, AuditEntry, JobType, Queue, QueuedJob
from django_jobqueue.store.reading.history import Counts, Part
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.text import numbers

MOST_TYPES: Final = 50  # job types of a queue with their figures
MOST_IDLE: Final = 200  # names of others


class QueuePage(NamedTuple):
    """All of it."""

    job_types: Sequence[dict[str, Any]]
    more_types: int  # active ones that are not shown
    idle: Sequence[Any]  # job types that declare this queue, and no more
    idle_count: int
    workers: Sequence[Any]
    history: Sequence[LogEntry]
    links: Sequence[tuple[str, Any]]
    curves: Curves


def page_of(request: HttpRequest, queue: Queue) -> QueuePage:
    """Read it, in a fixed number of queries."""
    by_type = {d.job_type: d for d in depths.depths(request) if d.queue == queue.name}
    past = last_day_of_types(queue.name)
    active = {*by_type, *past}
    depth = {name: by_type.get(name) or Depth(queue.name, name) for name in active}
    shown = sorted(active, key=lambda name: _weight(depth[name], past.get(name)))
    shown = sorted(shown[-MOST_TYPES:])
    idle = sorted(catalogue.types_of_queue(request, queue.name) - active)
    links = _type_links(request, [*shown, *idle[:MOST_IDLE]])
    return QueuePage(
        job_types=[
            _row(links[name], depth[name], past.get(name) or Counts()) for name in shown
        ],
        more_types=len(active) - len(shown),
        idle=[links[name] for name in idle[:MOST_IDLE]],
        idle_count=len(idle),
        workers=worker_links(request, fleet(request).serving(queue.name)),
        history=entries(Queue, queue.pk),
        links=_links(request, queue.name),
        curves=curves(
            request,
            Part(queue=queue.name),
            queue.name,
            sees_audit=may_view(request, AuditEntry),
        ),
    )


def served_cell(request: HttpRequest, queue: str, depth: Depth | None) -> Any:
    """How many living workers serve it."""
    nobody = gettext("no living worker serves it")
    return workers_cell(fleet(request).serving(queue), nobody, depth)


def _weight(depth: Depth, counts: Counts | None) -> tuple[int, int, int]:
    """If there are too many, waiting ones come first."""
    waiting = depth.ready + depth.retrying
    return waiting, depth.running, counts.finished if counts else 0


def _row(name: Any, depth: Depth, counts: Counts) -> dict[str, Any]:
    return {
        "name": name,
        "ready": depths.count_text(depth.ready),
        "oldest": depths.age_text(depth.oldest),
        "later": depths.count_text(depth.later),
        "running": numbers.number(depth.running),
        "finished": finished_cell(counts),
    }


def _type_links(request: HttpRequest, names: Sequence[str]) -> dict[str, Any]:
    known = catalogue.job_types(request, names) if may_view(request, JobType) else {}
    return {
        name: display.link("jobtype", name, display.visible(name))
        if name in known
        else display.visible(name)
        for name in names
    }


def _links(request: HttpRequest, queue: str) -> list[tuple[str, Any]]:
    offered = (
        (QueuedJob, gettext("Queued jobs")),
        (ArchivedJob, gettext("Archived jobs")),
    )
    return [
        (
            reverse(f"admin:jobqueue_{model._meta.model_name}_changelist")
            + f"?{urlencode({'queue': queue})}",
            label,
        )
        for model, label in offered
        if may_view(request, model)
    ]


PAUSE_BY_NAME: Final = PauseQueueByName()


@dataclass(slots=True)
class RowContext:
    """Facts about a queue that are not in its row."""

    depth: Depth
    day: Counts  # what happened in the last 24 h
    served: Any


class QueueList(PlainChangeList):
    """The queues that have a row, and those that are in use without one."""

    def find_page(self, request: HttpRequest) -> None:
        """All of them, by name: there are few."""
        super().find_page(request)
        rows = {queue.name: queue for queue in self.result_list}
        names = sorted({*rows, *known_names(request)})[: self.list_per_page]
        self.result_list = [rows.get(name) or open_queue(name) for name in names]
        self.result_count = len(names)


class QueueAdmin(ActionAdmin):
    """Queues can be paused and resumed."""

    change_form_template = "admin/jobqueue/queue.html"
    page_actions: ClassVar[Sequence[Action]] = (
        Pause(queues=True),
        Resume(queues=True),
        PAUSE_BY_NAME,
    )
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
        "pause_shown",
    )
    list_display_links = ("queue_name",)

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": ["django_jobqueue/overview.css", "django_jobqueue/machines.css"]
        }

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Also queues without a row."""
        return QueueList

    def get_object(self, request: HttpRequest, object_id: str, *args: Any) -> Any:
        """The queue with this name, also one that is in use without a row."""
        queue = super().get_object(request, object_id, *args)
        if queue is None and object_id in known_names(request):
            return open_queue(object_id)
        return queue

    def rows_of(
        self, request: HttpRequest, keys: Sequence[Any], *, is_held: bool = False
    ) -> list[Any]:
        """The selected queues, also those in use without a row."""
        held = super().rows_of(request, keys, is_held=is_held)
        rows = {queue.name: queue for queue in held}
        known = {*rows, *known_names(request)}
        names = [key for key in dict.fromkeys(keys) if key in known]
        return [rows.get(name) or open_queue(name) for name in names]

    def selected_keys(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> Sequence[Any]:
        """The ticked names: a queue without a row is not in the queryset."""
        return request.POST.getlist(ACTION_CHECKBOX_NAME)

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Depths, roll-ups and workers, each read once for all."""
        by_queue = depths.by_queue(request)
        past = last_day_of_queues()
        for row in rows:
            row.row_context = RowContext(
                depth=by_queue.get(row.name) or Depth(row.name, ""),
                day=past.get(row.name) or Counts(),
                served=served_cell(request, row.name, by_queue.get(row.name)),
            )
        return rows

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer to pause a queue by its name to users who may."""
        extra = {"may_pause": self.may_do(request, PAUSE_BY_NAME)}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        queue = context["original"]
        context["state"] = state_of(queue)
        context["summary"] = _summary(request, queue)
        context["page"] = page_of(request, queue)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("name"))
    def queue_name(self, queue: Queue) -> str:
        """The name."""
        return display.visible(queue.name)

    @column(description=_("state"))
    def state(self, queue: Queue) -> Any:
        """Its pause."""
        return state_of(queue)

    @column(description=_("ready"))
    def ready(self, queue: Any) -> Any:
        """The number of ready jobs, and how long the oldest has waited."""
        return depths.ready_cell(queue.row_context.depth)

    @column(description=_("later"))
    def later(self, queue: Any) -> str:
        """The number of jobs that are due later."""
        return depths.count_text(queue.row_context.depth.later)

    @column(description=_("running"))
    def running(self, queue: Any) -> str:
        """The number of running jobs."""
        return numbers.number(queue.row_context.depth.running)

    @column(description=_("finished, last 24 h"))
    def finished(self, queue: Any) -> Any:
        """The number of finished jobs, and the share of failed ones."""
        return finished_cell(queue.row_context.day)

    @column(description=_("workers"))
    def served(self, queue: Any) -> Any:
        """The workers that serve it."""
        return queue.row_context.served

    @column(description=_("paused"))
    def pause_shown(self, queue: Queue) -> Any:
        """The reason, the user and the time of the pause."""
        if not catalogue.is_paused(queue):
            return display.NOTHING
        return display.lines(
            [
                linked(display.visible(queue.paused_reason)) or display.NOTHING,
                display.visible(queue.paused_by),
                display.moment(queue.paused_at),
            ]
        )


def known_names(request: HttpRequest) -> set[str]:
    """The queues with a row, of job types, of jobs, and of workers."""
    return {
        *catalogue.queue_names(request),
        *depths.by_queue(request),
        *fleet(request).queues,
    }


def _summary(request: HttpRequest, queue: Queue) -> list[tuple[Any, Any]]:
    depth = depths.by_queue(request).get(queue.name) or Depth(queue.name, "")
    return [
        *pause_of(queue),
        (_("Ready"), depths.count_text(depth.ready)),
        (_("Oldest ready"), depths.age_text(depth.oldest)),
        (_("Later"), depths.count_text(depth.later)),
        (_("Running"), numbers.number(depth.running)),
        (_("Served by"), served_cell(request, queue.name, depth)),
    ]
