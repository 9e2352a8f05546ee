"""The jobs of workers that are gone: taken from them, and each told once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.signal_sender import announce_rescued
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.halving import each_it_can
from django_jobqueue.store.queue import rescue
from django_jobqueue.store.queue.rescue import BATCH, Rescued, rescue_some


class Recovery:
    """Takes what these workers hold, batch by batch.

    It may be interrupted by an outage and gone on with. Each batch is known before it
    is committed; if the answer of the commit is lost, the jobs are looked at again: one
    that they hold no more was taken, and is told.

    A job that the database refuses to move, as a trigger may, or that others keep from
    being moved by a lock, is left where it is, and the others are taken without it.
    """

    def __init__(self, workers: Sequence[int], *, crashed: bool, reason: str) -> None:
        self.taken: list[Rescued] = []
        self.refused: dict[UUID, psycopg.Error] = {}
        self._workers = workers
        self._crashed = crashed
        self._reason = reason
        self._unsure: list[Rescued] = []  # perhaps taken: the answer was lost

    def go_on(self, db: OwnConnection, only: Sequence[UUID] | None = None) -> None:
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
            for left in each_it_can(db, part, take, brief=True):
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
        self._tell(taken)
        return len(taken)

    def _settle(self, db: OwnConnection) -> None:
        """Tell of the last batch if its commit was done, and its answer lost."""
        if self._unsure:
            unsure = [job.id for job in self._unsure]
            held = set(rescue.held(db, self._workers, unsure))
            taken = [job for job in self._unsure if job.id not in held]
            self._unsure = []
            self._tell(taken)

    def _tell(self, taken: list[Rescued]) -> None:
        self.taken += taken
        announce_rescued(taken, self._reason)
