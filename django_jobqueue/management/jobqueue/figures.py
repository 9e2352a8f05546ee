"""What ``jobqueue status`` knows: read once, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models.functions import Coalesce

from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.times import database_now
from django_jobqueue.models import JobType, Worker
from django_jobqueue.states import ALIVE
from django_jobqueue.store import stats
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.stats import (
    Depth,
    FailureCount,
    Pause,
    Recent,
    WorkerRow,
)

WINDOW: Final = 3_600.0  # seconds that failures and throughput are of


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The state of the whole job queue at one moment."""

    time: datetime
    depths: list[Depth]
    workers: list[WorkerRow]
    known: dict[int, list[str]]  # the job types of each living worker
    failures: list[FailureCount]
    recent: list[Recent]
    closed: list[Pause]


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
        closed=[*stats.paused(db), *_without_slots()],
    )


def is_alive(worker: WorkerRow) -> bool:
    """Whether its row and its lease say that this worker lives."""
    return worker.state in ALIVE and worker.lease > 0


def _known(ids: list[int]) -> dict[int, list[str]]:
    rows = Worker.objects.using(conf.database).filter(id__in=ids)
    return dict(rows.values_list("id", "job_types"))


def _without_slots() -> list[Pause]:
    """Job types that a concurrency of 0 keeps from being claimed."""
    types = JobType.objects.using(conf.database).annotate(
        limit=Coalesce("concurrency_override", "concurrency")
    )
    names = types.filter(limit=0, paused=False).values_list("name", flat=True)
    return [Pause("job type", name, "", "its concurrency is 0") for name in names]
