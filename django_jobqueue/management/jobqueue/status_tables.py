"""The sections of ``jobqueue status``: a title and a table each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django_jobqueue.domain.histogram import added, percentile
from django_jobqueue.management.jobqueue.figures import Figures
from django_jobqueue.management.jobqueue.table import Column, Row
from django_jobqueue.stats.notices import depth_text
from django_jobqueue.store.reading.stats import Recent
from django_jobqueue.text import numbers

NONE: Final = "-"
LEAST_TEXT: Final = 20  # columns
QUEUE: Final = Column("Queue", least=8, cut="middle")
JOB_TYPE: Final = Column("Job type", least=18, cut="start")


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title. Without a row ``empty`` stands for it, or nothing."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    empty: str = ""


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


def throughput(figures: Figures) -> Section:
    """What workers counted in the last hour, with a row for all of it."""
    columns = [
        QUEUE,
        JOB_TYPE,
        *(Column(t, right=True) for t in ("Succeeded", "Failed", "Retried")),
        *(Column(t, right=True) for t in ("Wait\np95", "Run\np50", "Run\np95")),
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
        Column("Exception", least=12, cut="start"),
        Column("Job type", least=12, cut="start"),
        Column("Last ago", right=True),
        Column("Message", least=LEAST_TEXT),
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


def closed(figures: Figures, style: Any) -> Section:
    """What is not claimed, by whom and why."""
    columns = [
        Column("What"),
        Column("Name", least=18, cut="start"),
        Column("Ends in", right=True),
        Column("By", least=12),
        Column("Reason", least=12),
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
            style.WARNING,
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
    found, before = [], None
    for row in rows:
        first, *others = row.cells
        cells = ["" if first == before else first, *others]
        found.append(Row(cells, row.colour))
        before = first
    return found
