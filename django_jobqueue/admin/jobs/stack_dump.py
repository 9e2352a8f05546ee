"""Where is it now? The stack dump of a worker: the stacks of its jobs and threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin.actions.action import Button
from django_jobqueue.admin.base import may, may_view
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.tracebacks import Traceback, traceback_of
from django_jobqueue.domain.states import ALIVE, WITHOUT_SLOTS
from django_jobqueue.models import Failure, QueuedJob, Worker
from django_jobqueue.text import numbers


class Stack(NamedTuple):
    """Where one job, or one thread without a job, was."""

    name: Any
    job_type: str
    ran: str
    is_job: bool
    traceback: Traceback | None


class Place(NamedTuple):
    """Where a running job was, and when; whether a newer answer is awaited."""

    traceback: Traceback | None = None
    at: datetime | None = None
    is_awaited: bool = False


class StackDump(NamedTuple):
    """The latest stack dump of a worker, and whether one is still awaited."""

    at: datetime | None = None
    pending_since: datetime | None = None
    stacks: Sequence[Stack] = ()
    left_out: int = 0

    @property
    def when(self) -> Any:
        """When it was made, for the page."""
        return display.full_moment(self.at)

    @property
    def asked(self) -> Any:
        """When the pending one was requested, for the page."""
        return display.moment(self.pending_since)


def stack_dump_of(request: HttpRequest, worker: Worker) -> StackDump:
    """The latest stack dump of this worker."""
    dump, asked = _object(worker.stack_dump), _object(worker.request)
    is_newest = asked.get("stack_request") == dump.get("stack_request")
    pending = worker.state in ALIVE and not is_newest
    left_out = dump.get("left_out")
    return StackDump(
        at=moment_in(dump, "at"),
        pending_since=moment_in(asked, "stack_requested_at") if pending else None,
        stacks=[_stack(request, stack) for stack in _stacks(dump)],
        left_out=left_out if isinstance(left_out, int) else 0,
    )


def place_of(job: QueuedJob) -> Place:
    """Where a running job was in its worker's last stack dump, if there is one since
    it started."""
    rows = Worker.objects.filter(pk__in=[job.worker_id])
    row: Any = rows.values("stack_dump", "request", "state").first() or {}
    dump, asked = _object(row.get("stack_dump")), _object(row.get("request"))
    answered = (None, dump.get("stack_request"))
    is_awaited = asked.get("stack_request") not in answered and row["state"] in ALIVE
    at = moment_in(dump, "at")
    if at is None or job.started_at is None or at < job.started_at:
        return Place(is_awaited=is_awaited)
    for stack in _stacks(dump):
        if stack.get("job_id") == str(job.pk):
            return Place(_traceback(stack), at, is_awaited)
    return Place(is_awaited=is_awaited)


def stack_dump_button(request: HttpRequest, job: Any) -> list[Button]:
    """Ask the worker of a running job for a stack dump, for users who may. Whatever
    else holds the job has no stacks."""
    allowed = may(request, "control_worker") and may_view(request, Worker)
    worker: Worker | None = job.row_context.worker
    if job.worker_id is None or not allowed:
        return []
    if worker is not None and worker.state in WITHOUT_SLOTS:
        return []
    address = reverse("admin:jobqueue_worker_stack", args=[job.worker_id])
    url = f"{address}?{urlencode({'next': request.path})}"
    return [Button(_("Show stack"), url, is_post=True, is_tool=True)]


def moment_in(record: dict[str, Any], name: str) -> datetime | None:
    """A moment of a JSON object, as PostgreSQL writes it."""
    try:
        return parse_datetime(str(record.get(name, "")))
    except ValueError:
        return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _stacks(dump: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stacks = dump.get("stacks")
    for stack in stacks if isinstance(stacks, list) else ():
        if isinstance(stack, dict):
            yield stack


def _stack(request: HttpRequest, stack: dict[str, Any]) -> Stack:
    is_job = "job_id" in stack
    return Stack(
        name=_job(request, str(stack["job_id"]))
        if is_job
        else display.visible(str(stack.get("thread", ""))),
        job_type=display.visible(str(stack.get("job_type", ""))),
        ran=_ran(stack.get("seconds")),
        is_job=is_job,
        traceback=_traceback(stack),
    )


def _job(request: HttpRequest, id: str) -> Any:
    try:
        text = display.short_id(UUID(id))
    except ValueError:
        return display.visible(id)
    if not may_view(request, QueuedJob):
        return text
    return display.link("queuedjob", quote(id), text)


def _ran(seconds: Any) -> str:
    if not isinstance(seconds, int | float):
        return ""
    return numbers.duration(round(seconds * 1_000))


def _traceback(stack: dict[str, Any]) -> Traceback | None:
    return traceback_of(Failure(traceback=str(stack.get("stack", "")), frames=[]))
