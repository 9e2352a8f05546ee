"""The state of the job queue at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import Claimer, claimers, is_alive
from django_jobqueue.store.reading.stats import Depth, Pause, WorkerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The waiting and running jobs, the workers, and everything that is paused."""

    time: datetime
    depths: list[Depth]
    workers: list[WorkerRow]
    known: dict[int, frozenset[str]]  # the job types of each living worker
    closed: list[Pause]

    def claimers(self) -> list[Claimer]:
        """What the living workers claim, draining ones aside."""
        return claimers(self.workers, self.known)


def read() -> Present:
    """Read it from the caller's connection. No count goes above a cap."""
    db = DjangoDatabase()
    workers = stats.workers(db)
    return Present(
        time=database_now(),
        depths=stats.depths(db),
        workers=workers,
        known=known_job_types([worker.id for worker in workers if is_alive(worker)]),
        closed=[*stats.paused(db), *_without_slots(db)],
    )


def known_job_types(ids: list[int]) -> dict[int, frozenset[str]]:
    """The job types that each of these workers has handlers for."""
    return stats.known_job_types(DjangoDatabase(), ids)


def _without_slots(db: DjangoDatabase) -> list[Pause]:
    """Job types that a concurrency of 0 keeps from being claimed."""
    reason = _("its concurrency is 0")
    return [Pause("job type", name, "", reason) for name in stats.without_slots(db)]
