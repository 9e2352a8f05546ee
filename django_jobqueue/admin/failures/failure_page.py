"""The page of one failure group, read in a fixed number of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from django_jobqueue.admin.base import may, may_view
from django_jobqueue.admin.data_summaries import summaries
from django_jobqueue.admin.failures.affected import AffectedKey, affected
from django_jobqueue.admin.failures.failure_list import archived_cell, waiting_cell
from django_jobqueue.admin.failures.failure_trend import Trend, trends
from django_jobqueue.admin.failures.tracker import report_url
from django_jobqueue.admin.lists.selected import matching
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.linked_text import linked
from django_jobqueue.admin.parts.tracebacks import Traceback, traceback_of
from django_jobqueue.admin.permalink import permalink
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats
from django_jobqueue.store.reading.failure_stats import MOST_BROKEN_DOWN, Share
from django_jobqueue.text import numbers

EXAMPLES: Final = 10  # jobs
MESSAGES: Final = 5
READ_MESSAGES: Final = 100  # newest failures that are read for different messages
ENTRIES: Final = 20
LINES: Final = 8  # of each table of the breakdown
MOSTLY: Final = 0.95
MOST_TYPES: Final = 10


class Sample(NamedTuple):
    """The newest failure."""

    job: Any
    when: Any
    error_class: str
    message: str
    traceback: Traceback | None


@dataclass(frozen=True, slots=True)
class Line:
    """How many of the newest failures have this value."""

    name: str
    count: str
    percent: str
    width: str  # of the bar, in hundredths


class Breakdown(NamedTuple):
    """The newest failures by job type, queue, host or release."""

    label: str
    lines: Sequence[Line]
    others: int  # values that are not shown
    note: str = ""  # when nearly all have the same value


class AffectedType(NamedTuple):
    """A job type whose jobs failed so, and the way to its pause."""

    name: Any  # a link, if the user may see the job type
    pause: str  # why it is paused; empty if it is not
    url: str  # of the page that asks whether to pause or resume it; empty: not allowed


class GroupPage(NamedTuple):
    """Everything on the page."""

    since: Any
    sample: Sample | None
    types: Sequence[AffectedType]
    messages: Sequence[str]
    trends: Sequence[Trend]
    examined: str
    is_all: bool  # every failure was looked at
    breakdowns: Sequence[Breakdown]
    affected: Sequence[AffectedKey]
    archived: Sequence[dict[str, Any]]
    waiting: Sequence[dict[str, Any]]
    history: Sequence[LogEntry]
    tracker: str  # where to report it; empty if there is no tracker


def page_of(request: HttpRequest, group: FailureGroup) -> GroupPage:
    """Read it."""
    shares = failure_stats.break_down(DjangoDatabase(), group.pk)
    examined = sum(share.failures for share in shares)
    return GroupPage(
        since=display.full_moment(group.regressed_at or group.first_seen),
        sample=_sample(group),
        types=_types(request, shares),
        messages=_messages(group),
        trends=trends(group.pk),
        examined=numbers.number(examined),
        is_all=examined < MOST_BROKEN_DOWN,
        breakdowns=_breakdowns(shares, examined),
        affected=affected(request, group.pk),
        archived=_archived(request, group),
        waiting=_waiting(request, group),
        history=_history(group),
        tracker=report_url(request, group, shares),
    )


def summary(request: HttpRequest, group: FailureGroup) -> list[tuple[Any, Any]]:
    """The summary at the top of the page."""
    figures = failure_stats.figures(DjangoDatabase(), [group.pk])[group.pk]
    return [
        (_("Message"), display.shown_text(group.template) or display.NOTHING),
        (_("Place"), display.breakable(group.frame)),
        (_("Archived jobs"), archived_cell(request, group.pk, figures)),
        (_("Waiting jobs"), waiting_cell(request, group.pk, figures)),
        (_("Assignee"), display.visible(group.assignee) or display.NOTHING),
        (_("First seen"), display.full_moment(group.first_seen)),
        (_("Last seen"), display.full_moment(group.last_seen)),
        *_decided(group),
        (_("Fingerprint"), display.whole_id(group.pk, _("Copy the fingerprint"))),
    ]


def _decided(group: FailureGroup) -> Iterator[tuple[Any, Any]]:
    """The decisions, if there are any."""
    if group.resolved_at is not None:
        yield _("Resolved"), display.full_moment(group.resolved_at)
    if group.excused:
        yield _("Not reopened by releases"), display.names(group.excused)
    if group.regressed_at is not None:
        yield _("Regressed"), display.full_moment(group.regressed_at)
    if group.changed_at is not None:
        yield _("Changed"), display.full_moment(group.changed_at)
        yield _("Changed by"), display.visible(group.changed_by) or display.NOTHING


def _sample(group: FailureGroup) -> Sample | None:
    failure = (
        Failure.objects.filter(fingerprint=group.pk)
        .defer("log_tail")
        .order_by("-finished_at")
        .first()
    )
    if failure is None:
        return None
    return Sample(
        job=format_html(
            '<a href="{}">{}</a>',
            permalink(failure.job_id),
            display.short_id(failure.job_id),
        ),
        when=display.full_moment(failure.finished_at),
        error_class=display.shown_text(failure.error_class),
        message=display.shown_text(failure.error_message or failure.reason),
        traceback=traceback_of(failure),
    )


def _types(request: HttpRequest, shares: Sequence[Share]) -> list[AffectedType]:
    """The job types of its newest failures, those that fail most first."""
    counts: Counter[str] = Counter()
    for share in shares:
        counts[share.job_type] += share.failures
    names = [name for name, _count in counts.most_common(MOST_TYPES)]
    known = catalogue.job_types(request, names)
    return [_type(request, name, known.get(name)) for name in names]


def _type(request: HttpRequest, name: str, row: JobType | None) -> AffectedType:
    shown = display.breakable(name)
    if row is None or not may_view(request, JobType):
        return AffectedType(shown, "", "")
    is_paused = catalogue.is_paused(row)
    url = ""
    if may(request, "pause_jobtype"):
        verb = "resume" if is_paused else "pause"
        query = urlencode({"keys": name, "next": request.path})
        url = f"{reverse(f'admin:jobqueue_jobtype_{verb}')}?{query}"
    reason = linked(display.visible(row.paused_reason)) or _("no reason given")
    return AffectedType(
        display.link("jobtype", name, shown), reason if is_paused else "", url
    )


def _messages(group: FailureGroup) -> list[str]:
    """Different messages of the newest failures, as they were."""
    newest = Failure.objects.filter(fingerprint=group.pk).order_by("-finished_at")
    texts = newest.values_list("error_message", flat=True)[:READ_MESSAGES]
    shown = (display.shown_text(text, 500) for text in texts if text)
    return list(dict.fromkeys(shown))[:MESSAGES]


def _breakdowns(shares: Sequence[Share], total: int) -> list[Breakdown]:
    return [
        _breakdown(label, note, value, shares, total)
        for label, note, value in (
            (_("Job type"), "", lambda share: share.job_type),
            (_("Queue"), "", lambda share: share.queue),
            (
                _("Host"),
                _("%(percent)s of them happened on %(name)s."),
                lambda share: share.worker.rpartition(":")[0],
            ),
            (
                _("Release"),
                _("%(percent)s of them carry release %(name)s."),
                lambda share: share.release,
            ),
        )
    ]


def _breakdown(
    label: str,
    note: str,
    value: Callable[[Share], str],
    shares: Iterable[Share],
    total: int,
) -> Breakdown:
    counts: Counter[str] = Counter()
    for share in shares:
        counts[value(share)] += share.failures
    ranked = counts.most_common()
    lines = [_line(name, count, total) for name, count in ranked[:LINES]]
    mostly = note and ranked and ranked[0][0] and ranked[0][1] >= MOSTLY * total
    values = {"percent": lines[0].percent, "name": lines[0].name} if mostly else {}
    return Breakdown(
        label, lines, max(0, len(ranked) - LINES), note % values if mostly else ""
    )


def _line(name: str, count: int, total: int) -> Line:
    percent = 100 * count / total
    return Line(
        name=display.visible(name) or _("unknown"),
        count=numbers.number(count),
        percent=numbers.percent(count / total),
        width=f"{percent:.1f}",
    )


def _archived(request: HttpRequest, group: FailureGroup) -> list[dict[str, Any]]:
    """The newest jobs that were archived with it."""
    if not may_view(request, ArchivedJob):
        return []
    jobs = list(
        ArchivedJob.objects.filter(fingerprint=group.pk)
        .order_by("-finished_at", "-id")
        .only("id", "job_type", "finished_at", "error_message")[:EXAMPLES]
    )
    about = summaries(request, Table.ARCHIVED, jobs)
    return [
        {
            "job": display.link("archivedjob", job.pk, display.short_id(job.pk)),
            "summary": about.get(job.pk, ""),
            "job_type": display.visible(job.job_type_id),
            "when": display.moment(job.finished_at),
            "message": display.shown_text(job.error_message, display.CELL),
        }
        for job in jobs
    ]


def _waiting(request: HttpRequest, group: FailureGroup) -> list[dict[str, Any]]:
    """Jobs that failed so lately and will be tried again."""
    if not may_view(request, QueuedJob):
        return []
    newest = Failure.objects.filter(fingerprint=group.pk).order_by("-finished_at")
    ids = newest.values_list("job_id", flat=True)[:READ_MESSAGES]
    chosen = Selection(Table.QUEUED, (Term("id", tuple(ids)), Term("group", group.pk)))
    matched = matching(QueuedJob.objects.order_by("run_after", "id"), chosen)
    columns = ("id", "job_type", "run_after", "attempts")
    jobs = list(matched.only(*columns)[:EXAMPLES])
    about = summaries(request, Table.QUEUED, jobs)
    return [
        {
            "job": display.link("queuedjob", job.pk, display.short_id(job.pk)),
            "summary": about.get(job.pk, ""),
            "job_type": display.visible(job.job_type_id),
            "when": display.moment(job.run_after),
            "attempts": numbers.number(job.attempts),
        }
        for job in jobs
    ]


def _history(group: FailureGroup) -> list[LogEntry]:
    """The log of operators' actions."""
    content_type = ContentType.objects.get_for_model(FailureGroup)
    return list(
        LogEntry.objects.filter(object_id=str(group.pk), content_type=content_type)
        .select_related("user")
        .order_by("-action_time")[:ENTRIES]
    )
