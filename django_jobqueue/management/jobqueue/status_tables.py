"""The parts of the picture that ``jobqueue status`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.domain.histogram import added, percentile
from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.domain.states import WorkerState
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.status_data import Figures
from django_jobqueue.management.jobqueue.text_tables import (
    Column,
    Paragraph,
    Part,
    Row,
    Section,
)
from django_jobqueue.management.jobqueue.time_formats import local
from django_jobqueue.stats.unclaimed_jobs import depth_text, notices
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.leases import LeaseRow
from django_jobqueue.store.reading.stats import Recent, WorkerRow
from django_jobqueue.text import numbers

NONE: Final = "-"
QUEUE: Final = Column("Queue", breaks=True)
MOST_ENDED: Final = 10  # workers
WORKER: Final = Column("Worker", breaks=True)
JOB_TYPE: Final = Column("Job type", breaks=True)


def parts(figures: Figures) -> list[Part]:
    """Everything: what is wrong, and a section for each kind of thing."""
    zone = timezone.get_current_timezone_name()
    when = f"{local(figures.present.time)} {zone}"
    wrong = [one_line(notice.message) for notice in notices(figures.present)]
    sections = (
        queues(figures),
        workers(figures),
        ended(figures),
        standby(figures),
        throughput(figures),
        failures(figures),
        closed(figures),
    )
    return [
        Paragraph(f"Job queue in database {conf.database!r}, {when}"),
        *([Paragraph("")] if wrong else []),
        *(Paragraph(text, "bold red") for text in wrong),
        *(section for section in sections if section.rows or section.empty),
    ]


def queues(figures: Figures) -> Section:
    """What waits and runs."""
    columns = [
        QUEUE,
        JOB_TYPE,
        *(Column(t, right=True) for t in ("Ready", "Later", "Retrying", "Running")),
        Column("Oldest", right=True),
    ]
    rows = [
        Row(
            [
                depth.queue,
                depth.job_type,
                *map(_count, (depth.ready, depth.later, depth.retrying, depth.running)),
                NONE if depth.oldest is None else numbers.span(depth.oldest),
            ]
        )
        for depth in figures.present.depths
    ]
    return Section(
        "Queues", columns, _without_repeats(rows), "nothing waits, nothing runs."
    )


def workers(figures: Figures) -> Section:
    """Those that have not ended, as far as their rows say."""
    columns = [
        WORKER,
        Column("State"),
        *(Column(t, right=True) for t in ("Running", "Slots")),
        *(Column(t, right=True) for t in ("Lease", "Memory", "Age")),
        Column("Queues", cut=True),
    ]
    rows = [
        Row(
            [
                worker.name,
                worker.state if is_alive(worker) else "lapsed",
                numbers.number(worker.running),
                numbers.number(worker.threads + worker.async_slots),
                numbers.span(worker.lease) if is_alive(worker) else NONE,
                numbers.megabytes(worker.rss) if worker.rss else NONE,
                numbers.span(worker.age),
                "every" if worker.queues is None else ", ".join(worker.queues),
            ],
            _colour(worker),
        )
        for worker in figures.present.workers
        if not _has_ended(worker)
    ]
    return Section("Workers", columns, rows, "none.")


def ended(figures: Figures) -> Section:
    """The newest of those that ended, and how."""
    columns = [WORKER, Column("State"), Column("How it ended", cut=True)]
    all_ended = [worker for worker in figures.present.workers if _has_ended(worker)]
    newest = sorted(all_ended, key=lambda worker: -worker.id)[:MOST_ENDED]
    rows = [
        Row([worker.name, worker.state, worker.end or NONE], _colour(worker))
        for worker in newest
    ]
    title = "Workers that ended in the last 10 minutes"
    if len(all_ended) > MOST_ENDED:
        title += f" (the newest {MOST_ENDED} of {numbers.number(len(all_ended))})"
    return Section(title, columns, rows)


def standby(figures: Figures) -> Section:
    """The active one of hosts that stand by for each other."""
    columns = [
        Column("Name", breaks=True),
        Column("Active host", breaks=True),
        *(Column(title, right=True) for title in ("Lease", "Age", "Fence")),
    ]
    rows = [
        Row(_standby_cells(row, figures), "" if row.state == "held" else "red")
        for row in figures.standby
    ]
    return Section("Standby", columns, rows)


def _standby_cells(row: LeaseRow, figures: Figures) -> list[str]:
    name, fence = row.name.removeprefix(STANDBY), numbers.number(row.fence)
    if row.state != "held":
        return [name, f"none (the last one was {row.holder})", NONE, NONE, fence]
    age = (figures.present.time - row.since).total_seconds()
    return [name, row.holder, numbers.span(row.left), numbers.span(age), fence]


def throughput(figures: Figures) -> Section:
    """What workers counted in the last hour, with a row for all of it."""
    columns = [
        QUEUE,
        JOB_TYPE,
        *(Column(t, right=True) for t in ("Succeeded", "Failed", "Retried")),
        *(Column(t, right=True) for t in ("Wait p95", "Run p50", "Run p95")),
    ]
    recent = sorted(figures.recent, key=lambda one: (one.queue, one.job_type))
    rows = _without_repeats(
        [_throughput([one], one.queue, one.job_type) for one in recent]
    )
    if len(rows) > 1:
        rows.append(_throughput(recent, "all", ""))
    return Section("The last hour", columns, rows, "no attempt ended.")


def failures(figures: Figures) -> Section:
    """What was archived as failed in the last hour, by exception and job type."""
    columns = [
        Column("Jobs", right=True),
        Column("Exception", breaks=True),
        Column("Job type", breaks=True),
        Column("Last ago", right=True),
        Column("Message", cut=True),
    ]
    rows = [
        Row(
            [
                _count(failure.count),
                failure.error_class or NONE,
                failure.job_type,
                numbers.span((figures.present.time - failure.last).total_seconds()),
                " ".join(failure.message.split()),
            ]
        )
        for failure in figures.failures
    ]
    title = "Jobs that failed for good in the last hour"
    return Section(title, columns, rows, "none.")


def closed(figures: Figures) -> Section:
    """What is not claimed, by whom and why."""
    columns = [
        Column("What"),
        Column("Name", breaks=True),
        Column("Ends in", right=True),
        Column("By", cut=True),
        Column("Reason", cut=True),
    ]
    rows = [
        Row(
            [
                one.what,
                one.name,
                _left(figures.present.time, one.until),
                one.by or NONE,
                " ".join(one.reason.split()) or NONE,
            ],
            "yellow",
        )
        for one in figures.present.closed
    ]
    return Section("Paused", columns, rows)


def _throughput(recent: Sequence[Recent], queue: str, name: str) -> Row:
    runs, waits = added(r.run for r in recent), added(r.wait for r in recent)
    times = (percentile(waits, 0.95), percentile(runs, 0.5), percentile(runs, 0.95))
    return Row(
        [
            queue,
            name,
            numbers.number(sum(r.succeeded for r in recent)),
            numbers.number(sum(r.failed for r in recent)),
            numbers.number(sum(r.retried for r in recent)),
            *(
                NONE if seconds is None else numbers.run_time(seconds)
                for seconds in times
            ),
        ]
    )


def _left(now: datetime, until: datetime | None) -> str:
    return NONE if until is None else numbers.span((until - now).total_seconds())


def _count(count: int) -> str:
    return depth_text(count) if count else NONE


def _without_repeats(rows: list[Row]) -> list[Row]:
    """The rows with the first text only where it changes."""
    shortened, before = [], None
    for row in rows:
        first, *others = row.cells
        cells = ["" if first == before else first, *others]
        shortened.append(Row(cells, row.colour))
        before = first
    return shortened


def _colour(worker: WorkerRow) -> str:
    has_lapsed = not _has_ended(worker) and not is_alive(worker)
    if worker.state == WorkerState.LOST or has_lapsed:
        return "red"
    if worker.state == WorkerState.DRAINING:
        return "yellow"
    return ""


def _has_ended(worker: WorkerRow) -> bool:
    return worker.state in (WorkerState.STOPPED, WorkerState.LOST)
