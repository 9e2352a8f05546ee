"""The head of the page of a worker, or of a row that is none: facts of the row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Count, Min, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.tabs import address_of
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.models import Host, QueuedJob, Worker
from django_jobqueue.rooms import offer
from django_jobqueue.text import numbers

Lines = list[tuple[Any, Any]]  # labels and values


class RowPage(NamedTuple):
    """The page of a row that is not a process."""

    title: Any
    slots_title: Any  # of its jobs
    summary: Callable[[Worker], Lines]
    job_types: Callable[[Worker], tuple[list[str], str]] | None = None  # in a sentence
    is_move: bool = False  # whose jobs are held, and do not run


def summary_of(request: HttpRequest, worker: Worker) -> Lines:
    """The facts that mean something for it."""
    page = row_page(worker)
    return page.summary(worker) if page else _of_process(request, worker)


def row_page(worker: Worker) -> RowPage | None:
    """Its page if it is not a process."""
    page: RowPage | None = offer("row_pages", worker.state)
    return page


def queue_names(worker: Worker) -> str:
    """The queues that it claims from."""
    return _("every queue") if worker.queues is None else display.names(worker.queues)


def _of_move(worker: Worker) -> Lines:
    jobs = held_jobs(worker)
    return [
        *_place(worker),
        (_("Held jobs"), numbers.number(jobs["count"])),
        (_("Oldest"), display.full_moment(jobs["oldest"])),
        *_lease(worker),
    ]


def running_jobs(worker: Worker) -> QuerySet[QueuedJob]:
    """Those that it runs or holds, by the jobs' own rows."""
    return QueuedJob.objects.filter(worker_id=worker.pk, status=QueuedStatus.RUNNING)


def held_jobs(worker: Worker) -> dict[str, Any]:
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
    return [(_("Host"), display.visible(worker.host)), (_("Process"), str(worker.pid))]


def _owner(worker: Worker) -> str:
    """The name of a program or user; of a caller of your own, its identity."""
    caller, _colon, identity = worker.owner.partition(":")
    name_of = offer("owners", caller)
    name: str = name_of(identity) if name_of else ""
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


MOVE: Final = RowPage(
    gettext_lazy("View move to another database"),
    gettext_lazy("Held jobs"),
    _of_move,
    is_move=True,
)
