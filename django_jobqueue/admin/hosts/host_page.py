"""The page of a host: its plan, its workers, and the requests to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.hosts.host_cells import is_alive, queues_text, requests_of
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.admin.workers.worker_list import state_of
from django_jobqueue.domain.states import ALIVE
from django_jobqueue.models import Host, Worker
from django_jobqueue.text import numbers

MOST: Final = 200  # workers


class HostPage(NamedTuple):
    """Everything on the page."""

    note: str
    error: str
    requests: Sequence[tuple[str, str]]  # and whether it was done
    workers: Sequence[dict[str, Any]]
    history: Sequence[LogEntry]


def page_of(request: HttpRequest, host: Host) -> HostPage:
    """Read it, in a fixed number of queries."""
    return HostPage(
        note=_note(host),
        error=display.shown_text(host.error),
        requests=[
            (text, _("not yet") if key in host.pending else _("yes"))
            for key, text in requests_of(host)
        ],
        workers=_workers(request, host) if may_view(request, Worker) else [],
        history=entries(Host, host.pk),
    )


def summary_of(host: Host) -> list[tuple[Any, Any]]:
    """The head of the page."""
    return [
        (_("Host"), display.visible(host.host)),
        (_("Release"), display.visible(host.release) or display.NOTHING),
        (_("Processes"), numbers.number(host.processes)),
        (_("Threads of each"), numbers.number(host.threads)),
        (_("Async slots of each"), numbers.number(host.async_slots)),
        (_("Queues"), queues_text(host.queues)),
        (_("Started"), display.full_moment(host.started_at)),
        (_("Renewed"), display.full_moment(host.renewed_at)),
        (_("Lease until"), display.full_moment(host.lease_until)),
        (_("Stopped"), display.full_moment(host.stopped_at)),
    ]


def _note(host: Host) -> str:
    if not host.embedded:
        return ""
    return _(
        "This worker is embedded in another program. It can be drained, resumed and "
        "stopped; it cannot be scaled or restarted: its program sets its slots and "
        "loads its code."
    )


def _workers(request: HttpRequest, host: Host) -> list[dict[str, Any]]:
    """The living workers of a living host; of another one, the last."""
    workers = Worker.objects.filter(supervisor=host.name, host=host.host).order_by(
        "-id"
    )
    if is_alive(host):
        workers = workers.filter(state__in=ALIVE)
    shown = workers.defer("stack_dump", "job_types", "versions")[:MOST]
    return [
        {
            "name": display.link("worker", row.pk, display.visible(row.name)),
            "state": state_of(row),
            "busy": display.attempts(row.running, row.threads + row.async_slots),
            "started": display.moment(row.started_at),
        }
        for row in shown
    ]
