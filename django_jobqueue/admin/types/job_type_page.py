"""The page of a job type, except its policy: figures, failures, workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from django_jobqueue import rooms
from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.parts import depths, display, policies
from django_jobqueue.admin.parts.curves import Curves, curves
from django_jobqueue.admin.parts.run_times import RunTimes, at_most, run_times
from django_jobqueue.admin.workers.fleet import fleet, worker_links, workers_cell
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.stats.totals import Line
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import windows
from django_jobqueue.store.reading.history import Part
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.store.reading.windows import DAY, HOUR, WEEK
from django_jobqueue.text import numbers, timezones

MOST_EXAMINED: Final = 1_000  # failed jobs, among which the commonest groups are found
MOST_GROUPS: Final = 5
MOST_JOBS: Final = 5
LENGTHS: Final = {
    HOUR: gettext_lazy("last hour"),
    DAY: gettext_lazy("last 24 h"),
    WEEK: gettext_lazy("last 7 days"),
}


class Figures(NamedTuple):
    """The figures of one window, in words."""

    label: Any
    finished: str
    failed: str
    share: str
    retried: str
    wait: str
    runs: Sequence[str]  # half, 95 and 99 of a hundred were not longer


class Failures(NamedTuple):
    """The commonest failures of a week, and the newest jobs that failed."""

    groups: Sequence[dict[str, Any]]
    jobs: Sequence[dict[str, Any]]
    examined: int  # jobs

    @property
    def is_cut(self) -> bool:
        """True if there may be more failed jobs than were looked at."""
        return self.examined == MOST_EXAMINED


class JobTypePart(NamedTuple):
    """What a room adds to the page: a section, and links of addresses and labels."""

    section: str
    links: Sequence[tuple[str, Any]] = ()


class JobTypePage(NamedTuple):
    """Everything on the page."""

    depth: Sequence[tuple[Any, Any]]
    figures: Sequence[Figures]
    run_times: RunTimes | None
    failures: Failures | None
    workers: Sequence[Any]
    sections: Sequence[str]  # of rooms
    links: Sequence[tuple[str, Any]]
    curves: Curves


def page_of(request: HttpRequest, job_type: JobType, depth: Depth) -> JobTypePage:
    """Read it, in a fixed number of queries."""
    by_length = _windows(job_type)
    day = by_length[DAY]
    sees_archive = may_view(request, ArchivedJob)
    parts: list[JobTypePart] = [
        part(request, job_type) for part in rooms.offered("job_type_parts")
    ]
    return JobTypePage(
        depth=_depth(job_type, depth),
        figures=[
            _figures(LENGTHS[seconds], line) for seconds, line in by_length.items()
        ],
        run_times=run_times(day.run, _summary_of(day)),
        failures=_failures(request, job_type) if sees_archive else None,
        workers=worker_links(request, fleet(request).knowing(job_type.name)),
        sections=[part.section for part in parts],
        links=[*_links(request, job_type), *(link for p in parts for link in p.links)],
        curves=curves(
            request,
            Part(job_type=job_type.name),
            job_type.name,
            sees_audit=may_view(request, AuditEntry),
        ),
    )


def handler_cell(request: HttpRequest, job_type: JobType, depth: Depth | None) -> Any:
    """The number of living workers with the handler, and their releases."""
    knowing = fleet(request).knowing(job_type.name)
    return workers_cell(knowing, _("no handler in any live worker"), depth)


def running_text(depth: Depth, job_type: JobType) -> str:
    """How many run, of how many that may."""
    limit = policies.effective_concurrency(job_type)
    running = numbers.number(depth.running)
    return running if limit is None else f"{running} / {numbers.number(limit)}"


def _depth(job_type: JobType, depth: Depth) -> list[tuple[Any, Any]]:
    return [
        (_("Ready"), depths.count_text(depth.ready)),
        (_("Oldest ready"), depths.age_text(depth.oldest)),
        (_("Later"), depths.count_text(depth.later)),
        (pgettext("jobs", "Retrying"), depths.count_text(depth.retrying)),
        (_("Running"), running_text(depth, job_type)),
    ]


def _windows(job_type: JobType) -> dict[int, Line]:
    """The figures of each window, by its length in seconds."""
    by_length = {seconds: Line(job_type.name) for seconds in LENGTHS}
    for shortest, recent in windows.of_job_type(DjangoDatabase(), job_type.name):
        for seconds, line in by_length.items():
            if shortest <= seconds:
                line.add(recent)
    return by_length


def _figures(label: Any, line: Line) -> Figures:
    return Figures(
        label=label,
        finished=numbers.number(line.finished),
        failed=numbers.number(line.failed),
        share=numbers.percent(line.failed_share),
        retried=numbers.number(line.retried),
        wait=at_most(line.wait_time(0.95)),
        runs=[at_most(line.run_time(share)) for share in (0.5, 0.95, 0.99)],
    )


def _summary_of(day: Line) -> str:
    return _("Run times of the last 24 h: half took %(half)s, 95 %% took %(most)s.") % {
        "half": at_most(day.run_time(0.5)),
        "most": at_most(day.run_time(0.95)),
    }


def _failures(request: HttpRequest, job_type: JobType) -> Failures:
    failed = ArchivedJob.objects.filter(
        job_type_id=job_type.name,
        status=ArchivedStatus.FAILED,
        finished_at__gte=timezones.now() - timedelta(seconds=WEEK),
    ).order_by("-finished_at", "-id")
    fingerprints = list(failed.values_list("fingerprint", flat=True)[:MOST_EXAMINED])
    newest = failed.only("id", "finished_at", "error_class", "error_message")
    return Failures(
        groups=_groups(request, job_type, Counter(f for f in fingerprints if f)),
        jobs=[_job(job) for job in newest[:MOST_JOBS]] if fingerprints else [],
        examined=len(fingerprints),
    )


def _groups(
    request: HttpRequest, job_type: JobType, counts: Counter[Any]
) -> list[dict[str, Any]]:
    """The commonest, with links to the group and to its jobs of this type."""
    if not counts or not may_view(request, FailureGroup):
        return []
    commonest = counts.most_common(MOST_GROUPS)
    rows = FailureGroup.objects.in_bulk([fingerprint for fingerprint, _n in commonest])
    jobs = reverse("admin:jobqueue_archivedjob_changelist")
    return [
        {
            "name": _group_name(rows.get(fingerprint), fingerprint),
            "message": display.shown_text(rows[fingerprint].template, display.CELL)
            if fingerprint in rows
            else "",
            "count": numbers.number(count),
            "jobs": f"{jobs}?{_query(job_type, fingerprint=fingerprint)}",
        }
        for fingerprint, count in commonest
    ]


def _group_name(group: FailureGroup | None, fingerprint: Any) -> Any:
    if group is None:
        return display.short_id(fingerprint)
    return display.group_link(fingerprint, group.error_class, group.frame)


def _job(job: ArchivedJob) -> dict[str, Any]:
    return {
        "job": display.link("archivedjob", job.pk, display.short_id(job.pk)),
        "finished": display.moment(job.finished_at),
        "error": display.lines(display.error_cell(job.error_class, job.error_message)),
    }


def _links(request: HttpRequest, job_type: JobType) -> list[tuple[str, Any]]:
    offered: tuple[tuple[type[Any], str, dict[str, str]], ...] = (
        (QueuedJob, _("Queued jobs"), {}),
        (ArchivedJob, _("Archived jobs"), {}),
        (ArchivedJob, _("Failed jobs"), {"status": ArchivedStatus.FAILED.value}),
    )
    return [
        (f"{_list_of(model)}?{_query(job_type, **more)}", label)
        for model, label, more in offered
        if may_view(request, model)
    ]


def _list_of(model: type[Any]) -> str:
    address: str = reverse(f"admin:jobqueue_{model._meta.model_name}_changelist")
    return address


def _query(job_type: JobType, **more: Any) -> str:
    return urlencode({"job_type": job_type.name, **more})
