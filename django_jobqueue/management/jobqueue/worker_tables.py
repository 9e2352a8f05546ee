"""The sections of ``jobqueue status`` that are about workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django_jobqueue.domain.states import WorkerState
from django_jobqueue.management.jobqueue.figures import Figures
from django_jobqueue.management.jobqueue.status_tables import LEAST_TEXT, NONE, Section
from django_jobqueue.management.jobqueue.table import Column, Row
from django_jobqueue.stats.current_state import is_alive
from django_jobqueue.store.reading.stats import WorkerRow
from django_jobqueue.text import numbers

MOST_ENDED: Final = 10
WORKER: Final = Column("Worker", least=16, cut="middle")


def workers(figures: Figures, style: Any) -> Section:
    """Those that have not ended, as far as their rows say."""
    columns = [
        WORKER,
        Column("State"),
        *(Column(t, right=True) for t in ("Running", "Slots")),
        *(Column(t, right=True) for t in ("Lease", "Memory", "Age")),
        Column("Queues", least=10),
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
            _colour(worker, style),
        )
        for worker in figures.present.workers
        if not _has_ended(worker)
    ]
    return Section("Workers", columns, rows, "none.")


def ended(figures: Figures, style: Any) -> Section:
    """The newest of those that ended, and how."""
    columns = [WORKER, Column("State"), Column("How it ended", least=LEAST_TEXT)]
    all_ended = [worker for worker in figures.present.workers if _has_ended(worker)]
    newest = sorted(all_ended, key=lambda worker: -worker.id)[:MOST_ENDED]
    rows = [
        Row([worker.name, worker.state, worker.end or NONE], _colour(worker, style))
        for worker in newest
    ]
    title = "Workers that ended in the last 10 minutes"
    if len(all_ended) > MOST_ENDED:
        title += f" (the newest {MOST_ENDED} of {numbers.number(len(all_ended))})"
    return Section(title, columns, rows)


def _colour(worker: WorkerRow, style: Any) -> Callable[[str], str]:
    has_lapsed = not _has_ended(worker) and not is_alive(worker)
    if worker.state == WorkerState.LOST or has_lapsed:
        return style.ERROR  # type: ignore[no-any-return]
    if worker.state == WorkerState.DRAINING:
        return style.WARNING  # type: ignore[no-any-return]
    return str


def _has_ended(worker: WorkerRow) -> bool:
    return worker.state in (WorkerState.STOPPED, WorkerState.LOST)
