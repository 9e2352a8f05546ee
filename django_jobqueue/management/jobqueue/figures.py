"""What ``jobqueue status`` knows: read once, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models.functions import Coalesce

from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.times import database_now
from django_jobqueue.models import JobType, Queue, Worker
from django_jobqueue.states import WorkerState
from django_jobqueue.store import stats
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.stats import (
    Depth,
    FailureCount,
    Recent,
    WorkerRow,
)

WINDOW: Final = 3_600.0  # seconds that failures and throughput are of
LIVING: Final = (WorkerState.RUNNING.value, WorkerState.DRAINING.value)


@dataclass(frozen=True, slots=True)
class Closed:
    """A job type or queue that is not claimed, since when and until when."""

    what: str  # job type, or queue
    name: str
    by: str
    reason: str
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The state of the whole job queue at one moment."""

    time: datetime
    depths: list[Depth]
    workers: list[WorkerRow]
    known: dict[int, list[str]]  # the job types of each living worker
    failures: list[FailureCount]
    recent: list[Recent]
    closed: list[Closed]


def read() -> Figures:
    """Read everything, from the caller's connection."""
    db = DjangoDatabase()
    workers = stats.workers(db)
    return Figures(
        time=database_now(),
        depths=stats.depths(db),
        workers=workers,
        known=_known([worker.id for worker in workers if is_alive(worker)]),
        failures=stats.failures(db, WINDOW),
        recent=stats.recent(db, WINDOW),
        closed=[*_paused(db), *_without_slots()],
    )


def is_alive(worker: WorkerRow) -> bool:
    """Whether its row and its lease say that this worker lives."""
    return worker.state in LIVING and worker.lease > 0


def _known(ids: list[int]) -> dict[int, list[str]]:
    rows = Worker.objects.using(conf.database).filter(id__in=ids)
    return dict(rows.values_list("id", "job_types"))


def _paused(db: DjangoDatabase) -> list[Closed]:
    paused = stats.paused(db)
    times: dict[tuple[str, str], Any] = {}
    for what, model in (("job type", JobType), ("queue", Queue)):
        names = [pause.name for pause in paused if pause.what == what]
        rows = model._default_manager.using(conf.database).filter(name__in=names)
        for name, *when in rows.values_list("name", "paused_at", "resume_at"):
            times[what, name] = when
    return [
        Closed(p.what, p.name, p.by, p.reason, *times.get((p.what, p.name), ()))
        for p in paused
    ]


def _without_slots() -> list[Closed]:
    """Job types that a concurrency of 0 keeps from being claimed."""
    types = JobType.objects.using(conf.database).annotate(
        limit=Coalesce("concurrency_override", "concurrency")
    )
    names = types.filter(limit=0, paused=False).values_list("name", flat=True)
    return [Closed("job type", name, "", "its concurrency is 0") for name in names]
