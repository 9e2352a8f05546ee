"""A dead worker: what is known of its end, and how its jobs are taken from it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.signal_sender import announce_rescued
from django_jobqueue.host.maintenance.overruns import Overruns
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.partial_batches import BRIEF, apply_in_parts
from django_jobqueue.store.queue import rescue
from django_jobqueue.store.queue.rescue import BATCH, Rescued, rescue_some
from django_jobqueue.store.rollup import Count

logger = logging.getLogger("django_jobqueue.maintenance")

SHORTEST: Final = 0.1  # seconds until the next try, after one that failed
LONGEST: Final = 5.0
WHILE_OTHERS_RAN: Final = "; this job did not run then"
JOBS: Final = ("timed_out", "suspects")  # fields of a ProcessDeath with jobs


class ProcessDeath(NamedTuple):
    """A worker that has ended."""

    worker: int
    name: str
    crashed: bool
    reason: str
    number: int = 0  # counted by the supervisor; 0: another host's worker
    stopping: bool = False  # it ended because the whole host stops
    # Jobs that ran longer than their timeout and held the interpreter's lock.
    timed_out: tuple[UUID, ...] = ()
    # The jobs that count a crash, if that is known. Else all do if it crashed.
    suspects: tuple[UUID, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """In the form in which it is sent to another process."""
        return self._asdict() | {
            name: list(map(str, getattr(self, name))) for name in JOBS
        }

    @classmethod
    def of_json(cls, fields: Mapping[str, Any]) -> ProcessDeath:
        """The reverse of ``to_json()``."""
        jobs = {name: tuple(map(UUID, fields[name])) for name in JOBS}
        return cls(**{**fields, **jobs})


class JobRecovery:
    """Takes the jobs of these workers, batch by batch, and reports each job once.

    An outage may interrupt it; call ``run()`` again. Each batch is known before it is
    committed. If the answer to the commit is lost, the jobs are checked again: one that
    the workers no longer hold was taken, and is reported.

    A job stays where it is if the database refuses to move it, as a trigger may, or if
    others hold a lock on it. The other jobs are taken without it.
    """

    def __init__(self, workers: Sequence[int], *, crashed: bool, reason: str) -> None:
        self.taken: list[Rescued] = []
        self.refused: dict[UUID, psycopg.Error] = {}
        self._workers = workers
        self._crashed = crashed
        self._reason = reason
        self._unsure: list[Rescued] = []  # perhaps taken: the answer was lost

    def run(self, db: OwnConnection, only: Sequence[UUID] | None = None) -> None:
        """Take everything, or ``only`` these jobs. Raises StoreUnavailable."""
        self._settle(db)
        try:
            while self._take(db, only) == BATCH:
                pass
        except (psycopg.Error, StoreUnavailable) as error:
            if isinstance(error, StoreUnavailable) and not is_contended(error):
                raise
            self._take_what_can_be(db, only)

    def _take_what_can_be(self, db: OwnConnection, only: Sequence[UUID] | None) -> None:
        ids = rescue.held(db, self._workers, only)
        take = partial(self._take, db)
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            for left in apply_in_parts(db, part, take, brief=True):
                self.refused |= dict.fromkeys(left.items, left.error)

    def _take(self, db: OwnConnection, only: Sequence[UUID] | None) -> int:
        """Take one batch; returns how many."""
        self._unsure = []
        with db.transaction() as transaction:
            self._unsure = rescue_some(
                transaction,
                self._workers,
                crashed=self._crashed,
                reason=self._reason,
                only=only,
            )
        taken, self._unsure = self._unsure, []
        self._report(taken)
        return len(taken)

    def _settle(self, db: OwnConnection) -> None:
        """Report the last batch if it was committed and only the answer was lost."""
        if self._unsure:
            unsure = [job.id for job in self._unsure]
            held = set(rescue.held(db, self._workers, unsure))
            taken = [job for job in self._unsure if job.id not in held]
            self._unsure = []
            self._report(taken)

    def _report(self, taken: list[Rescued]) -> None:
        self.taken += taken
        announce_rescued(taken, self._reason)


class DeadWorkerRecovery:
    """Deals with one death, in as many tries as it takes."""

    def __init__(self, death: ProcessDeath) -> None:
        self.death = death
        self.next_at = 0.0  # time.monotonic()
        of, reason = [death.worker], death.reason
        crashed = death.crashed and not death.suspects
        others = f"{reason}{WHILE_OTHERS_RAN}" if death.suspects else reason
        self.recovery = JobRecovery(of, crashed=crashed, reason=others)
        self._overruns = Overruns(death.worker, death.timed_out)
        self._suspected = JobRecovery(of, crashed=True, reason=reason)
        self._pause = SHORTEST

    def run(self, db: OwnConnection) -> None:
        """Record the end of the worker, and take its jobs, even while another
        transaction has locked the worker's row.

        Raises StoreUnavailable, and psycopg.Error if the database refuses a statement.
        Each next try is later, so that other deaths are not kept waiting.
        """
        try:
            self._run(db)
        except (StoreUnavailable, psycopg.Error):
            self.next_at = time.monotonic() + self._pause
            self._pause = min(LONGEST, 2 * self._pause)
            raise

    def _run(self, db: OwnConnection) -> None:
        death = self.death
        locked = self._write_end(db)
        if death.timed_out:
            self._overruns.run(db)
        if death.suspects:
            self._suspected.run(db, death.suspects)
        self.recovery.run(db)
        if locked is not None:
            raise locked
        if taken := self.taken:
            counts = Counter(job.status for job in taken)
            worker_rows.record_rescued(db, death.worker, counts)
            summarize(death.name, death.reason, taken)

    def _write_end(self, db: OwnConnection) -> StoreUnavailable | None:
        """Write it to the worker's row; returns the error if the row is locked."""
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
    def timed_out(self) -> list[Count]:
        """The counts of attempts that exceeded their timeout."""
        return self._overruns.counts

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
