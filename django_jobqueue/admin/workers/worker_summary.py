"""The head of the page of a worker, of an endpoint and of a move: facts of its row."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Count, Min, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.tabs import address_of
from django_jobqueue.admin.workers import endpoint_cells
from django_jobqueue.domain.states import QueuedStatus, WorkerState
from django_jobqueue.models import Host, QueuedJob, Worker
from django_jobqueue.rooms import load, named
from django_jobqueue.text import numbers

Lines = list[tuple[Any, Any]]  # labels and values


def summary_of(request: HttpRequest, worker: Worker) -> Lines:
    """The facts that mean something for it."""
    if worker.state == WorkerState.ENDPOINT:
        return _of_endpoint(worker)
    if worker.state == WorkerState.MOVING:
        return _of_move(worker)
    return _of_process(request, worker)


def queue_names(worker: Worker) -> str:
    """The queues that it claims from."""
    return _("every queue") if worker.queues is None else display.names(worker.queues)


def _of_endpoint(worker: Worker) -> Lines:
    jobs = _held_jobs(worker)
    return [
        *endpoint_cells.settings_lines(worker, jobs["count"]),
        (_("Handed over"), numbers.number(jobs["count"])),
        (_("Oldest"), display.full_moment(jobs["oldest"])),
        *endpoint_cells.answer_lines(worker),
    ]


def _of_move(worker: Worker) -> Lines:
    jobs = _held_jobs(worker)
    return [
        *_place(worker),
        (_("Held jobs"), numbers.number(jobs["count"])),
        (_("Oldest"), display.full_moment(jobs["oldest"])),
        *_lease(worker),
    ]


def running_jobs(worker: Worker) -> QuerySet[QueuedJob]:
    """Those that it runs or holds, by the jobs' own rows."""
    return QueuedJob.objects.filter(worker_id=worker.pk, status=QueuedStatus.RUNNING)


def _held_jobs(worker: Worker) -> dict[str, Any]:
    """How many there are, and when the oldest was claimed."""
    return running_jobs(worker).aggregate(count=Count("*"), oldest=Min("started_at"))


def _of_process(request: HttpRequest, worker: Worker) -> Lines:
    versions = ", ".join(f"{name} {value}" for name, value in worker.versions.items())
    return [
        *_place(worker),
        (_("Supervisor"), _host_link(request, worker) or display.NOTHING),
        (_("Release"), display.visible(worker.release) or display.NOTHING),
        (_("Queues"), queue_names(worker)),
        (_("Threads"), numbers.number(worker.threads)),
        (_("Async slots"), numbers.number(worker.async_slots)),
        (_("Running"), numbers.number(worker.running)),
        (_("Memory"), filesizeformat(worker.rss)),
        *_lease(worker),
        (_("Stopped"), display.full_moment(worker.stopped_at)),
        (_("Exit"), display.visible(worker.end) or display.NOTHING),
        (_("Versions"), display.visible(versions) or display.NOTHING),
    ]


def _place(worker: Worker) -> Lines:
    if worker.remote:
        return [(_("Remote worker of"), display.visible(_owner(worker)))]
    return [
        (_("Host"), display.visible(worker.host)),
        (_("Process"), str(worker.pid)),
    ]


def _owner(worker: Worker) -> str:
    """The name of a program or user; of a caller of your own, its identity."""
    caller, _colon, identity = worker.owner.partition(":")
    path = named("owners").get(caller)
    name: str = load(path)(identity) if path else ""
    return name or identity


def _lease(worker: Worker) -> Lines:
    return [
        (_("Started"), display.full_moment(worker.started_at)),
        (_("Renewed"), display.full_moment(worker.renewed_at)),
        (_("Lease until"), display.full_moment(worker.lease_until)),
    ]


def _host_link(request: HttpRequest, worker: Worker) -> Any:
    """The name of its host, which leads to the hosts of this name."""
    name = display.visible(worker.supervisor)
    address = address_of(request, "host") if may_view(request, Host) else ""
    if not (name and address):
        return name
    query = urlencode({SEARCH_VAR: worker.supervisor})
    return format_html('<a href="{}?{}">{}</a>', address, query, name)
