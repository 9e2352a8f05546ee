"""The state of the job queue at this moment."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.utils.translation import gettext as _

from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import Claimer, claimers, is_alive
from django_jobqueue.store.reading.stats import Depth, Pause, WorkerRow


class Present(NamedTuple):
    """The waiting and running jobs, the workers, and everything that is paused."""

    time: datetime
    depths: list[Depth]
    workers: list[WorkerRow]
    known: dict[int, frozenset[str]]  # the job types of each living worker
    closed: list[Pause]
    parked_hosts: int = 0  # or drained ones; counted where no worker is alive

    def claimers(self) -> list[Claimer]:
        """The claims of living workers, draining ones aside."""
        return claimers(self.workers, self.known)


def read(db: Database | None = None) -> Present:
    """Read it, from the caller's connection unless another is given. No count goes
    above a cap."""
    db = db or DjangoDatabase()
    workers = stats.workers(db)
    living = [worker.id for worker in workers if is_alive(worker)]
    return Present(
        time=database_now(db),
        depths=stats.depths(db),
        workers=workers,
        known=stats.known_job_types(db, living),
        closed=[*stats.paused(db), *_without_slots(db)],
        parked_hosts=0 if living else stats.parked_hosts(db),
    )


def unpaused(present: Present) -> list[Depth]:
    """The jobs that nobody has paused, neither their queue nor their type."""
    closed = {(pause.what, pause.name) for pause in present.closed}
    return [
        depth
        for depth in present.depths
        if ("queue", depth.queue) not in closed
        and ("job type", depth.job_type) not in closed
    ]


def known_job_types(ids: list[int]) -> dict[int, frozenset[str]]:
    """The job types that each of these workers has handlers for."""
    return stats.known_job_types(DjangoDatabase(), ids)


def _without_slots(db: Database) -> list[Pause]:
    """Job types that a concurrency of 0 keeps from being claimed."""
    reason = _("its concurrency is 0")
    return [Pause("job type", name, "", reason) for name in stats.without_slots(db)]
