"""Which living workers know a job type, and which serve a queue; read once a
request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.domain.states import ALIVE, WorkerState
from django_jobqueue.models import Worker
from django_jobqueue.stats.current_state import known_job_types
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.text import numbers, timezones

MOST: Final = 1_000  # workers
NAMED: Final = 10  # on a page; the others are counted
COLUMNS: Final = ("id", "name", "state", "release", "queues")


@dataclass(frozen=True)
class Fleet:
    """The workers whose leases hold."""

    living: Sequence[Worker] = field(default_factory=list)

    @cached_property
    def known(self) -> dict[int, frozenset[str]]:
        """The job types that each of them has handlers for."""
        return known_job_types([worker.pk for worker in self.living])

    def knowing(self, job_type: str) -> list[Worker]:
        """Those that have a handler for this job type."""
        return self._of(lambda worker: job_type in self.known[worker.pk])

    def serving(self, queue: str) -> list[Worker]:
        """Those that claim from this queue."""
        return self._of(lambda worker: worker.queues is None or queue in worker.queues)

    @property
    def queues(self) -> set[str]:
        """All queues that some of them name."""
        return {queue for worker in self.living for queue in worker.queues or ()}

    def _of(self, chosen: Callable[[Worker], bool]) -> list[Worker]:
        """Of these, the ones that claim, unless there are only others."""
        matching = [worker for worker in self.living if chosen(worker)]
        claiming = [w for w in matching if w.state == WorkerState.RUNNING]
        return claiming or matching


def fleet(request: HttpRequest) -> Fleet:
    """The fleet now."""
    known = getattr(request, "_jobqueue_fleet", None)
    if known is None:
        alive = Worker.objects.filter(
            state__in=ALIVE, lease_until__gt=timezones.now()
        ).only(*COLUMNS)
        known = Fleet(list(alive.order_by("id")[:MOST]))
        request._jobqueue_fleet = known  # type: ignore[attr-defined]
    return known


def workers_cell(workers: Sequence[Worker], nobody: Any, depth: Depth | None) -> Any:
    """The number of workers, and their releases; a pill if there are none, which is an
    alarm where jobs are ready."""
    if not workers:
        return display.pill("failed" if depth and depth.ready else "warned", nobody)
    if all(worker.state == WorkerState.DRAINING for worker in workers):
        return display.pill("draining", _("only draining workers"))
    text = ngettext("%(count)s worker", "%(count)s workers", len(workers))
    parts: list[Any] = [text % {"count": numbers.number(len(workers))}]
    releases = sorted({worker.release for worker in workers} - {""})
    if releases:
        parts.append(display.short(display.names(releases)))
    return display.lines(parts)


def worker_links(request: HttpRequest, workers: Sequence[Worker]) -> list[Any]:
    """Their names, as links for those who may follow them; the others counted."""
    sees = may_view(request, Worker)
    shown = [
        display.link("worker", worker.pk, display.visible(worker.name))
        if sees
        else display.visible(worker.name)
        for worker in workers[:NAMED]
    ]
    left = len(workers) - len(shown)
    if left:
        more = ngettext("and %(count)s more", "and %(count)s more", left)
        shown.append(more % {"count": numbers.number(left)})
    return shown
