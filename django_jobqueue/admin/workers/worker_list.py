"""Worker processes: who is alive, and what each is doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.workers.worker_actions import (
    AskWhere,
    DrainWorkers,
    RestartWorkers,
    ResumeWorkers,
    ShowStack,
    StopWorkers,
)
from django_jobqueue.admin.workers.worker_page import fate_of, is_done, page_of
from django_jobqueue.admin.workers.worker_summary import queue_names, summary_of
from django_jobqueue.domain.states import (
    ALIVE,
    WITHOUT_SLOTS,
    QueuedStatus,
    WorkerState,
)
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.text import numbers, timezones

JOBS_SHOWN: Final = 2  # of each worker, in the list
HOLDERS: Final = (*ALIVE, *WITHOUT_SLOTS)  # of running jobs
MOST_CHOICES: Final = 1_000  # workers, whose hosts and releases are offered


class WorkerStateFilter(ChoiceFilter):
    """Workers by their state as a person sees it."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The states, and that of a worker that should live and does not renew."""
        return [*WorkerState.choices, ("lapsed", _("lapsed"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Without endpoints, which stand above the list, unless they are asked for."""
        if self.value() is None:
            return queryset.exclude(state=WorkerState.ENDPOINT)
        return super().queryset(request, queryset)

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The workers in this state."""
        lapsed = Q(state__in=ALIVE, lease_until__lt=timezones.now())
        if value == "lapsed":
            return queryset.filter(lapsed)
        return queryset.filter(~lapsed, state=value)


class HostFilter(ChoiceFilter):
    """Workers of one host."""

    title = _("host")
    parameter_name = "host"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The hosts of the newest workers."""
        return _choices(request, 0)


class ReleaseFilter(ChoiceFilter):
    """Workers of one release of the project."""

    title = _("release")
    parameter_name = "release"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The releases of the newest workers."""
        return _choices(request, 1)


class WorkerAdmin(ActionAdmin):
    """Workers register themselves; operators send them requests."""

    change_form_template = "admin/jobqueue/worker.html"
    page_actions: ClassVar[Sequence[Action]] = (
        DrainWorkers(),
        ResumeWorkers(),
        StopWorkers(),
        RestartWorkers(),
        ShowStack(),
        AskWhere(),
    )
    action_columns = ("id", "name", "state", "running", "desired")
    ordering = (F("stopped_at").desc(nulls_first=True), "-id")
    list_display = ("worker_name", "doing", "busy", "jobs_now", "serves", "since")
    list_display_links = ("worker_name",)
    list_filter = (WorkerStateFilter, HostFilter, ReleaseFilter)

    class Media:
        css: ClassVar[dict[str, Any]] = {
            "all": ["django_jobqueue/traceback.css", "django_jobqueue/machines.css"]
        }

    def annotate(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """The running jobs of each worker, in one query."""
        jobs = _first_jobs([row.pk for row in rows if row.state in HOLDERS])
        sees = may_view(request, QueuedJob)
        for row in rows:
            first = jobs.get(row.pk, [])
            row.jobs = [_job_cell(job, sees) for job in first]
            if row.state in WITHOUT_SLOTS:
                row.running = first[0]["together"] if first else 0
        return rows

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        worker = context["original"]
        context["state"] = state_of(worker)
        context["summary"] = summary_of(request, worker)
        page = context["page"] = page_of(request, worker)
        context["title"] = page.title or context["title"]
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("worker"))
    def worker_name(self, worker: Worker) -> Any:
        """Host and process, or the name of a remote worker."""
        name = display.visible(worker.name)
        if not worker.remote:
            return name
        return format_html("{} {}", name, display.short(gettext("remote")))

    @column(description=_("state"))
    def doing(self, worker: Worker) -> Any:
        """The state, the request, and the end of the lease."""
        state = state_of(worker)
        if worker.state not in ALIVE:
            return state
        text = gettext("lease %(until)s") % {"until": display.ago(worker.lease_until)}
        return display.lines([state, display.short(text)])

    @column(description=_("busy"))
    def busy(self, worker: Worker) -> str:
        """Running jobs, of how many slots; those of an endpoint or a move hold none."""
        if worker.state in WITHOUT_SLOTS:
            return numbers.number(worker.running)
        return display.attempts(worker.running, worker.threads + worker.async_slots)

    @column(description=_("jobs now"))
    def jobs_now(self, worker: Any) -> Any:
        """The running jobs, or how the worker ended."""
        lines = worker.jobs if worker.state in HOLDERS else fate_of(worker)
        return display.lines(lines) if lines else display.NOTHING

    @column(description=_("queues, release"))
    def serves(self, worker: Worker) -> Any:
        """Where it claims from, and the version of the project that it runs."""
        if worker.state in WITHOUT_SLOTS:
            return display.NOTHING
        release = display.visible(worker.release)
        return display.lines(part for part in (queue_names(worker), release) if part)

    @column(description=_("started, memory"))
    def since(self, worker: Worker) -> Any:
        """Since when it runs, and its resident memory."""
        parts = [display.moment(worker.started_at)]
        if worker.rss:
            parts.append(display.short(filesizeformat(worker.rss)))
        return display.lines(parts)


def state_of(worker: Worker) -> Any:
    """The state, and a request that the worker has not obeyed yet; a worker or a move
    that does not renew its lease is lapsed."""
    state = display.pill(worker.state, worker.get_state_display())
    if worker.state not in (*ALIVE, WorkerState.MOVING):
        return state
    if worker.lease_until < timezones.now():
        lapsed = display.pill("lapsed", pgettext("worker", "lapsed"))
        is_move = worker.state == WorkerState.MOVING
        return format_html("{} {}", state, lapsed) if is_move else lapsed
    if is_done(worker):
        return state
    text = gettext("asked to %(what)s") % {"what": display.visible(worker.desired)}
    return format_html("{} {}", state, display.pill("asked", text))


def _first_jobs(workers: list[int]) -> dict[Any, list[Any]]:
    """The longest running jobs of each worker, which know how many run beside them."""
    if not workers:
        return {}
    each = [F("worker_id")]
    running = (
        QueuedJob.objects.filter(worker_id__in=workers, status=QueuedStatus.RUNNING)
        .annotate(
            place=Window(RowNumber(), each, ["started_at", "id"]),
            together=Window(Count("*"), each),
        )
        .filter(place__lte=JOBS_SHOWN)
        .values("worker_id", "id", "job_type", "started_at", "place", "together")
        .order_by("worker_id", "place")
    )
    by_worker: dict[Any, list[Any]] = {}
    for job in running:
        by_worker.setdefault(job["worker_id"], []).append(job)
    return by_worker


def _job_cell(job: dict[str, Any], sees: bool) -> Any:
    """A job's type and for how long it runs; the last one tells how many more do."""
    name = display.visible(job["job_type"])
    cell = format_html(
        "{} ({})",
        display.link("queuedjob", job["id"], name) if sees else name,
        display.moment(job["started_at"]),
    )
    left = job["together"] - job["place"]
    if job["place"] < JOBS_SHOWN or not left:
        return cell
    return format_html("{} {}", cell, f"+{left}")


def _choices(request: HttpRequest, place: int) -> list[tuple[str, Any]]:
    """The hosts, or the releases, of the newest workers; read once a request."""
    known = getattr(request, "_jobqueue_hosts", None)
    if known is None:
        newest = Worker.objects.order_by("-id").values_list("host", "release")
        known = set(newest[:MOST_CHOICES])
        request._jobqueue_hosts = known  # type: ignore[attr-defined]
    names = sorted({pair[place] for pair in known} - {""})
    return [(name, display.visible(name)) for name in names]
