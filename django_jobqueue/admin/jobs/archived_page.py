"""The page of an archived job."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.failures.tracker import report_link
from django_jobqueue.admin.jobs import related_jobs
from django_jobqueue.admin.jobs.free_key import held_key
from django_jobqueue.admin.jobs.job_admin import tries_of, type_link
from django_jobqueue.admin.jobs.job_attempts import Attempt, Attempts
from django_jobqueue.admin.jobs.job_page import JobPage, Reader
from django_jobqueue.admin.jobs.job_reports import ShownReport
from django_jobqueue.admin.jobs.timeline import Step, timeline
from django_jobqueue.admin.parts import catalogue, display, tags
from django_jobqueue.admin.parts.policies import own_rows
from django_jobqueue.admin.permalink import permalink
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models import FailureGroup, JobType
from django_jobqueue.text import numbers


def page_of(request: HttpRequest, job: Any, state: Any) -> JobPage:
    """The page of an archived job."""
    job_type = catalogue.job_type(request, job.job_type_id)
    read = Reader(request, job, job_type)
    attempts = read.attempts()
    return JobPage(
        state=state,
        summary=_summary(request, job, read, job_type),
        timeline=timeline(job, _start(job, attempts), attempts, _end(job)),
        attempts=attempts,
        current=_success(job, read.reports.current),
        data=read.data(),
        metadata=read.metadata(),
        result=read.result(),
        error=_unsaid(read.error(job), attempts),
        lately=related_jobs.lately(request, job),
        history=read.history(),
        downloads=read.downloads(),
        reveal=read.reveal(),
    )


def _unsaid(error: tuple[str, str], attempts: Attempts) -> tuple[str, str]:
    """Why the job ended, unless its last attempt says that already."""
    last = attempts.newest
    is_shown = last is not None and attempts.is_newest and last.error_class == error[0]
    if last is not None and is_shown and last.message.startswith(error[1]):
        return "", ""
    return error


def _summary(
    request: HttpRequest, job: Any, read: Reader, job_type: JobType | None
) -> list[tuple[Any, Any]]:
    return [
        (_("Id"), display.whole_id(job.pk)),
        (_("Job type"), type_link(request, job)),
        (_("Queue"), display.visible(job.queue)),
        (_("Priority"), job.priority),
        (_("Attempts"), tries_of(job, job_type)),
        *own_rows(job),
        (_("Waited"), numbers.duration(job.wait_ms)),
        (_("Ran"), numbers.duration(job.run_ms)),
        (_("Worker"), display.visible(job.worker) or display.NOTHING),
        (_("Release"), display.visible(job.release) or display.NOTHING),
        (_("Expires"), display.full_moment(job.expires_at)),
        *([(_("Tags"), tags.tags_links(job))] if tags.tags_of(job) else []),
        (_("Enqueued by"), display.visible(job.enqueued_by or display.NOTHING)),
        *related_jobs.facts_of_rooms(request, read.about),
        (_("Replay of"), related_jobs.origin(request, job)),
        (_("Replayed as"), related_jobs.replays(request, job)),
        (_("Bulk operation"), related_jobs.operation(request, job)),
        (_("Failure group"), _group(request, job, read)),
        *related_jobs.followers(request, job),
        *held_key(request, job),
    ]


def _group(request: HttpRequest, job: Any, read: Reader) -> Any:
    """The group, and where to report it."""
    group = read.group(job.fingerprint, job.error_class)
    if not group or not may_view(request, FailureGroup):
        return group or display.NOTHING
    report = report_link(
        request,
        job.fingerprint,
        read.error(job),
        job_type=job.job_type_id,
        page=permalink(job.pk),
    )
    return display.lines([group, report]) if report else group


def _start(job: Any, attempts: Attempts) -> list[Step]:
    """The last start, unless an attempt shows it."""
    is_shown = attempts.runs and job.status != ArchivedStatus.SUCCEEDED
    if job.started_at is None or is_shown:
        return []
    note = gettext("waited %(span)s") % {"span": numbers.duration(job.wait_ms)}
    return [Step(gettext("started"), job.started_at, note)]


def _end(job: Any) -> Step:
    note = ""
    if job.run_ms is not None:
        note = gettext("ran %(span)s") % {"span": numbers.duration(job.run_ms)}
    return Step(str(job.get_status_display()), job.finished_at, note, job.status)


def _success(job: Any, report: ShownReport | None) -> Attempt | None:
    """The attempt that succeeded stands on the job itself."""
    if job.status != ArchivedStatus.SUCCEEDED:
        return None
    return Attempt(
        number=job.attempts,
        style="succeeded",
        end=gettext("succeeded"),
        started_at=job.started_at,
        ran_ms=job.run_ms,
        worker=display.visible(job.worker),
        release=display.visible(job.release),
        report=report,
    )
