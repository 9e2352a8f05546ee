"""A worker that is gone, and what is done about it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.overruns import Overruns
from django_jobqueue.host.maintenance.recovery import Recovery
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.halving import BRIEF
from django_jobqueue.store.queue.rescue import Rescued

logger = logging.getLogger("django_jobqueue.rescuer")

SHORTEST: Final = 0.1  # seconds until the next try, after one that failed
LONGEST: Final = 5.0
JOBS: Final = ("timed_out", "suspects")  # what a Death says of jobs


@dataclass(frozen=True, slots=True)
class ProcessDeath:
    """A worker that has ended."""

    worker: int
    name: str
    crashed: bool
    reason: str
    number: int = 0  # of the supervisor's count; 0 is none
    stopping: bool = False  # it ended because the whole host stops
    # Of a process that was killed because a job held the interpreter's lock:
    timed_out: tuple[UUID, ...] = ()  # jobs that ran longer than their timeout
    suspects: tuple[UUID, ...] = ()  # jobs that count a crash

    def to_json(self) -> dict[str, Any]:
        """As it is told to another process."""
        return asdict(self) | {
            name: list(map(str, getattr(self, name))) for name in JOBS
        }

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> ProcessDeath:
        """The same there."""
        jobs = {name: tuple(map(UUID, told[name])) for name in JOBS}
        return cls(**{**told, **jobs})


class Burial:
    """Looks after a death, in as many tries as it takes."""

    def __init__(self, death: ProcessDeath) -> None:
        self.death = death
        self.next_at = 0.0  # time.monotonic()
        of, reason = [death.worker], death.reason
        self.recovery = Recovery(of, crashed=death.crashed, reason=reason)
        self._overruns = Overruns(death.worker, death.timed_out)
        self._suspected = Recovery(of, crashed=True, reason=reason)
        self._rest = SHORTEST

    def go_on(self, db: OwnConnection) -> None:
        """Write how the worker ended, and take its jobs; they do not wait for others
        who have locked its row.

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
        locked = self._write_end(db)
        if death.timed_out:
            self._overruns.go_on(db)
        if death.suspects:
            self._suspected.go_on(db, death.suspects)
        self.recovery.go_on(db)
        if locked is not None:
            raise locked
        if taken := self.taken:
            counts = Counter(job.status for job in taken)
            worker_rows.record_rescued(db, death.worker, counts)
            summarize(death.name, death.reason, taken)

    def _write_end(self, db: OwnConnection) -> StoreUnavailable | None:
        """Write it to the worker's row; what was said if that is locked."""
        end, lost = self.death.reason, self.death.crashed
        try:
            with db.patience(BRIEF):
                worker_rows.stopped(db, [self.death.worker], end=end, lost=lost)
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
            return error
        return None

    @property
    def taken(self) -> list[Rescued]:
        """The jobs that were taken from it so far."""
        return [*self._suspected.taken, *self.recovery.taken]

    @property
    def refused(self) -> dict[UUID, psycopg.Error]:
        """The jobs that the database refuses to move."""
        return {**self._suspected.refused, **self.recovery.refused}


def summarize(name: str, reason: str, taken: Sequence[Rescued]) -> None:
    """Log how many jobs were taken from a worker."""
    again = sum(job.status == "queued" for job in taken)
    logger.warning(
        "Worker %s: %s; %d of its jobs are queued again, %d archived",
        name,
        reason,
        again,
        len(taken) - again,
    )
