"""The page of a queued or running job."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.jobs import related_jobs, stack_dump
from django_jobqueue.admin.jobs.free_key import held_key
from django_jobqueue.admin.jobs.job_admin import tries_of, type_link
from django_jobqueue.admin.jobs.job_attempts import Attempt
from django_jobqueue.admin.jobs.job_page import JobPage, Reader
from django_jobqueue.admin.jobs.job_reports import ShownReport
from django_jobqueue.admin.jobs.timeline import Step, timeline
from django_jobqueue.admin.parts import display, tags
from django_jobqueue.admin.parts.policies import own_rows
from django_jobqueue.domain.per_key import limit_name_of
from django_jobqueue.domain.states import QueuedStatus


def page_of(request: HttpRequest, job: Any, state: Any) -> JobPage:
    """The page of a queued or running job with the row context of its list."""
    read = Reader(request, job, job.row_context.job_type)
    attempts = read.attempts()
    place = _place(job)
    return JobPage(
        state=state,
        summary=_summary(request, job, read),
        timeline=timeline(job, _steps(job), attempts),
        attempts=attempts,
        current=_running(job, read.reports.current, place),
        awaits_stack=place.is_awaited,
        data=read.data(),
        metadata=read.metadata(),
        lately=related_jobs.lately(request, job),
        history=read.history(),
        downloads=read.downloads(),
        reveal=read.reveal(),
    )


def _summary(request: HttpRequest, job: Any, read: Reader) -> list[tuple[Any, Any]]:
    return [
        (_("Id"), display.whole_id(job.pk)),
        (_("Job type"), type_link(request, job)),
        (_("Queue"), display.visible(job.queue)),
        (_("Why not running?"), reasons_text(job)),
        (_("Priority"), job.priority),
        (_("Attempts"), tries_of(job, job.row_context.job_type)),
        *own_rows(job),
        (_("Expires"), display.full_moment(job.expires_at)),
        *([(_("Tags"), tags.tags_links(job))] if tags.tags_of(job) else []),
        (_("Enqueued by"), display.visible(job.enqueued_by or display.NOTHING)),
        *related_jobs.facts_of_rooms(request, read.about),
        (_("Replay of"), related_jobs.origin(request, job)),
        (_("Replayed as"), related_jobs.replays(request, job)),
        (_("Bulk operation"), related_jobs.operation(request, job)),
        *related_jobs.followers(request, job),
        *held_key(request, job),
    ]


def _steps(job: Any) -> list[Step]:
    steps = []
    if job.started_at is not None:
        steps.append(Step(gettext("started"), job.started_at, style="running"))
    if job.cancel_requested_at is not None:
        steps.append(Step(gettext("asked to stop"), job.cancel_requested_at))
    return steps


def _place(job: Any) -> stack_dump.Place:
    if job.status != QueuedStatus.RUNNING or job.worker_id is None:
        return stack_dump.Place()
    return stack_dump.place_of(job)


def _running(
    job: Any, report: ShownReport | None, place: stack_dump.Place
) -> Attempt | None:
    """The running attempt."""
    if job.status != QueuedStatus.RUNNING:
        return None
    worker = job.row_context.worker
    notes = []
    if place.is_awaited:
        notes.append(gettext("The stack was requested and will appear here."))
    if place.traceback is not None and place.at is not None:
        text = gettext("Where it was %(ago)s:")
        notes.append(text % {"ago": display.ago(place.at)})
    return Attempt(
        number=job.attempts,
        style="running",
        end=gettext("running"),
        started_at=job.started_at,
        worker=display.visible(worker.name) if worker else "",
        note=" ".join(notes),
        traceback=place.traceback,
        report=report,
    )


def reasons_text(job: Any) -> Any:
    """Why a job is not running, one reason below the other."""
    reasons = job.row_context.why
    if not reasons:
        return display.NOTHING
    return display.lines([_linked(job, reason) for reason in reasons])


def _linked(job: Any, reason: str) -> Any:
    """With a link to the jobs that hold the limit which it waits for, or to the page of
    the job type or queue."""
    about = getattr(reason, "about", "")
    if about == "limit":
        address = reverse("admin:jobqueue_queuedjob_changelist")
        query = urlencode({"state": "running", "job_type": job.job_type_id})
        return format_html('<a href="{}?{}">{}</a>', address, query, reason)
    if about == "key" and job.row_context.sees_limits:
        return display.link("keylimit", limit_name_of(job.limit_key), reason)
    if about == "job type" and job.row_context.sees_types:
        return display.link("jobtype", job.job_type_id, reason)
    if about == "queue" and job.row_context.sees_queues:
        return display.link("queue", job.queue, reason)
    return reason
