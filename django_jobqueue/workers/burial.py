"""A worker that is gone, and what is done about it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.recovery import Recovery

logger = logging.getLogger("django_jobqueue.rescuer")

SHORTEST: Final = 0.1  # seconds until the next try, after one that failed
LONGEST: Final = 5.0


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that has ended."""

    worker: int
    name: str
    crashed: bool
    reason: str
    number: int = 0  # of the supervisor's count; 0 is none
    stopping: bool = False  # it ended because the whole host stops


@dataclass(slots=True, eq=False)
class Burial:
    """Looks after a death, in as many tries as it takes."""

    death: Death
    recovery: Recovery = field(init=False)
    next_at: float = 0.0  # time.monotonic()
    _rest: float = SHORTEST

    def __post_init__(self) -> None:
        death = self.death
        self.recovery = Recovery(
            [death.worker], crashed=death.crashed, reason=death.reason
        )

    def go_on(self, db: OwnConnection) -> None:
        """Write how the worker ended, and take its jobs.

        Raises StoreUnavailable, and psycopg.Error where the database refuses something;
        then the next try is later each time, so that others are not kept waiting.
        """
        try:
            self._go_on(db)
        except (StoreUnavailable, psycopg.Error):
            self.next_at = time.monotonic() + self._rest
            self._rest = min(LONGEST, 2 * self._rest)
            raise

    def _go_on(self, db: OwnConnection) -> None:
        death = self.death
        workers.stopped(db, [death.worker], end=death.reason, lost=death.crashed)
        self.recovery.go_on(db)
        if taken := self.recovery.taken:
            counts = Counter(job.status for job in taken)
            workers.record_rescued(db, death.worker, counts)
            summarize(death.name, death.reason, self.recovery)


def summarize(name: str, reason: str, recovery: Recovery) -> None:
    """Log how many jobs were taken from a worker."""
    again = sum(job.status == "queued" for job in recovery.taken)
    logger.warning(
        "Worker %s: %s; %d of its jobs are queued again, %d archived",
        name,
        reason,
        again,
        len(recovery.taken) - again,
    )
