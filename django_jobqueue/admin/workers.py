"""Worker processes: who is alive, and what each is doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.admin import display as column
from django.contrib.admin import register
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import display
from django_jobqueue.admin.actions import OperatedAdmin
from django_jobqueue.admin.ask_workers import (
    DrainWorkers,
    RestartWorkers,
    ResumeWorkers,
    StopWorkers,
)
from django_jobqueue.admin.base import may, may_view
from django_jobqueue.admin.verbs import Verb
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.states import ALIVE, QueuedStatus

MOST_JOBS = 100


@register(Worker)
class WorkerAdmin(OperatedAdmin):
    """Workers register themselves; operators ask them for things."""

    change_form_template = "admin/jobqueue/worker.html"
    verbs: ClassVar[Sequence[Verb]] = (
        DrainWorkers(),
        ResumeWorkers(),
        StopWorkers(),
        RestartWorkers(),
    )
    verb_columns = ("id", "name", "state", "running", "desired")
    ordering = (F("stopped_at").desc(nulls_first=True), "-id")
    list_display = (
        "worker_name",
        "doing",
        "queue_names",
        "busy",
        "lease",
        "started",
        "memory",
        "release_name",
    )
    list_display_links = ("worker_name",)

    def has_control_permission(self, request: HttpRequest) -> bool:
        """Whether the user may ask workers for something."""
        return may(request, "control_worker")

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        worker = context["original"]
        context["state"] = state_of(worker)
        context["summary"] = _summary(worker)
        context["jobs"] = _jobs(request, worker)
        context["buttons"] = self.buttons(request, worker)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("worker"))
    def worker_name(self, worker: Worker) -> str:
        """Host and process."""
        return display.visible(worker.name)

    @column(description=_("state"))
    def doing(self, worker: Worker) -> Any:
        """What it does, and what is asked of it."""
        return state_of(worker)

    @column(description=_("queues"))
    def queue_names(self, worker: Worker) -> str:
        """Where it claims from."""
        return _queues(worker)

    @column(description=_("busy"))
    def busy(self, worker: Worker) -> str:
        """Running jobs, of how many slots."""
        return f"{worker.running} / {worker.threads + worker.async_slots}"

    @column(description=_("lease"))
    def lease(self, worker: Worker) -> Any:
        """Until when its claims hold."""
        return display.moment(worker.lease_until) if worker.state in ALIVE else "–"

    @column(description=_("started"))
    def started(self, worker: Worker) -> Any:
        """Since when."""
        return display.moment(worker.started_at)

    @column(description=_("memory"))
    def memory(self, worker: Worker) -> str:
        """Resident memory."""
        return filesizeformat(worker.rss) if worker.rss else display.NOTHING

    @column(description=_("release"))
    def release_name(self, worker: Worker) -> str:
        """The version of the project that it runs."""
        return display.visible(worker.release) or display.NOTHING


def state_of(worker: Worker) -> Any:
    """What it does; a worker that does not renew its lease is lapsed."""
    if worker.state not in ALIVE:
        return display.pill(worker.state, worker.get_state_display())
    if worker.lease_until < timezone.now():
        return display.pill("lapsed", pgettext("worker", "lapsed"))
    state = display.pill(worker.state, worker.get_state_display())
    if not worker.desired:
        return state
    text = gettext("asked to %(what)s") % {"what": display.visible(worker.desired)}
    return format_html("{} {}", state, display.pill("asked", text))


def _queues(worker: Worker) -> str:
    if worker.queues is None:
        return gettext("every queue")
    return display.names(worker.queues)


def _summary(worker: Worker) -> list[tuple[Any, Any]]:
    versions = ", ".join(f"{name} {value}" for name, value in worker.versions.items())
    return [
        (_("Host"), display.visible(worker.host)),
        (_("Process"), str(worker.pid)),
        (_("Supervisor"), display.visible(worker.supervisor) or display.NOTHING),
        (_("Release"), display.visible(worker.release) or display.NOTHING),
        (_("Queues"), _queues(worker)),
        (_("Threads"), worker.threads),
        (_("Async slots"), worker.async_slots),
        (_("Running"), worker.running),
        (_("Memory"), filesizeformat(worker.rss)),
        (_("Started"), display.full_moment(worker.started_at)),
        (_("Renewed"), display.full_moment(worker.renewed_at)),
        (_("Lease until"), display.full_moment(worker.lease_until)),
        (_("Stopped"), display.full_moment(worker.stopped_at)),
        (_("How it ended"), display.visible(worker.end) or display.NOTHING),
        (_("Versions"), display.visible(versions) or display.NOTHING),
        (_("Job types"), display.names(worker.job_types)),
    ]


def _jobs(request: HttpRequest, worker: Worker) -> list[dict[str, Any]]:
    """What it runs now, by the jobs' own rows."""
    sees = may_view(request, QueuedJob)
    found = (
        QueuedJob.objects.filter(worker_id=worker.pk, status=QueuedStatus.RUNNING)
        .only("id", "job_type", "started_at", "attempts")
        .order_by("started_at", "id")[:MOST_JOBS]
    )
    return [
        {
            "job": display.link("queuedjob", job.pk, display.short_id(job.pk))
            if sees
            else display.short_id(job.pk),
            "job_type": display.visible(job.job_type_id),
            "attempt": job.attempts,
            "since": display.full_moment(job.started_at),
        }
        for job in found
    ]
