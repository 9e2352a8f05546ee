"""Gathers outcomes and finishes them in batches, each with its fence."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.outcomes import Outcome, Verb
from django_jobqueue.states import AttemptEnd
from django_jobqueue.store import finish
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.finish import Finished, Holder
from django_jobqueue.workers.announcer import anybody_hears_ends, tell_end
from django_jobqueue.workers.attempt import Attempt
from django_jobqueue.workers.loop import FOREVER, Loop
from django_jobqueue.workers.tally import Tally

logger = logging.getLogger(__name__)

BATCH: Final = 1_000  # jobs; 500 take 7 % longer for each, 200 take 20 %
GATHER: Final = 0.005  # seconds that a burst may gather
TALLY_EVERY: Final = 10.0  # seconds
IDLE: Final = 60.0  # seconds without an outcome; then the connection is let go

Item = tuple[Attempt, Finished]


class Completer(Loop):
    """Finishes what the executors did.

    A lone outcome is written at once; in a burst, whatever gathered while the last
    batch was written, or in a few milliseconds. What cannot be written is kept and
    tried again until it is refused: an outage of the database runs no finished job
    again.
    """

    name = "completer"

    def __init__(
        self,
        holder: Holder,
        connection: OwnConnection,
        *,
        busy: Callable[[], bool] = lambda: False,
        finished: Callable[[Sequence[Attempt]], None] = lambda attempts: None,
        report: Callable[[OwnConnection, Sequence[Attempt]], None] | None = None,
    ) -> None:
        super().__init__()
        self._holder = holder
        self._connection = connection
        self._busy = busy  # whether more outcomes are about to come
        self._finished = finished
        self._report = report  # writes what attempts told
        self._gathered: deque[Item] = deque()
        self._writing: list[Item] = []
        self._full = threading.Event()
        self._tally = Tally()
        self._tallied = time.monotonic()
        self._doubtful = False  # the answer of the last try was lost
        self._wrote = -math.inf  # time.monotonic()

    def add(self, attempt: Attempt, finished: Finished) -> None:
        """Take an outcome, from any thread."""
        self._gathered.append((attempt, finished))
        if len(self._gathered) >= BATCH:
            self._full.set()
        self.wake()

    @property
    def is_done(self) -> bool:
        """Whether everything that was added is written."""
        return not self._gathered and not self._writing

    @property
    def waiting(self) -> int:
        """How many outcomes wait while others are written."""
        return len(self._gathered)

    @property
    def unwritten(self) -> set[UUID]:
        """Jobs whose outcome is known here and not yet written."""
        while True:
            try:
                return {
                    finished.id for _, finished in [*self._gathered, *self._writing]
                }
            except RuntimeError:  # it changed meanwhile
                continue

    def tick(self) -> float:
        """Write what has gathered."""
        if not self._writing and self._gathered:
            if self._busy() and len(self._gathered) < BATCH:
                self._full.wait(GATHER)
            self._full.clear()
            self._writing = self._take()
        if self._writing:
            self._write()
        if self._tally and time.monotonic() - self._tallied >= TALLY_EVERY:
            self._add_up()
        if self._gathered:
            return 0.0
        return TALLY_EVERY if self._tally else self._rest_idle()

    def close(self) -> None:
        """Write the counts, too, if it can be done; then let the connection go."""
        try:
            while self._writing or self._gathered:
                self.tick()
            if self._tally:
                self._add_up()
        except StoreUnavailable:
            logger.warning("%d outcomes could not be written", len(self.unwritten))
        self._connection.close()

    def _rest_idle(self) -> float:
        rest = self._wrote + IDLE - time.monotonic()
        if rest > 0:
            return rest
        self._connection.close()
        return FOREVER

    def _take(self) -> list[Item]:
        taken: list[Item] = []
        while self._gathered and len(taken) < BATCH:
            taken.append(self._gathered.popleft())
        return taken

    def _write(self) -> None:
        items = self._writing
        unsettled = [finished for attempt, finished in items if not attempt.settled]
        succeeded = [f for f in unsettled if f.outcome.verb is Verb.SUCCEED]
        others = [f for f in unsettled if f.outcome.verb is not Verb.SUCCEED]
        try:
            self._write_reports([attempt for attempt, _ in items if attempt.is_telling])
            refused = self._send(finish.succeed, succeeded)
            refused |= self._send(finish.end, others)
        except StoreUnavailable:
            self._doubtful = True
            raise
        self._writing, self._wrote = [], time.monotonic()
        self._account_for(items, refused)
        self._doubtful = False
        self._finished([attempt for attempt, _ in items])

    def _account_for(self, items: list[Item], refused: set[UUID]) -> None:
        """Count what is written, and tell of it."""
        is_heard, add = anybody_hears_ends(), self._tally.add
        for attempt, finished in items:
            if not refused or finished.id not in refused:
                add(attempt, finished)
                if is_heard:
                    tell_end(attempt, finished)
            elif not self._doubtful:
                logger.info(
                    "Job %s was rescued while it ran here; its outcome (%s) is dropped",
                    finished.id,
                    finished.outcome.verb.value,
                )

    def _write_reports(self, telling: list[Attempt]) -> None:
        """Before the jobs are finished, so that whoever sees a job's end sees what it
        told."""
        if telling and self._report is not None:
            self._report(self._connection, telling)

    def _send(self, verb: Callable[..., set[UUID]], batch: list[Finished]) -> set[UUID]:
        """Write a batch, each by itself if the database refuses something in it; return
        the ids of jobs that are ours no more."""
        if not batch:
            return set()
        try:
            return verb(self._connection, self._holder, batch, time.monotonic())
        except psycopg.Error:
            if len(batch) == 1:
                return self._send_plainly(batch[0])
            logger.warning("A batch of outcomes was refused; writing each by itself")
        lost: set[UUID] = set()
        for finished in batch:
            lost |= self._send(verb, [finished])
        return lost

    def _send_plainly(self, finished: Finished) -> set[UUID]:
        """The last resort for an outcome that the database refuses: a bare failure."""
        logger.exception(
            "The outcome of job %s was refused; it is archived as failed", finished.id
        )
        finished.outcome = Outcome(
            verb=Verb.FAIL,
            end=AttemptEnd.FAILED,
            reason="the database refused the outcome of this attempt; see the log",
        )
        now = time.monotonic()
        return finish.end(self._connection, self._holder, [finished], now)

    def _add_up(self) -> None:
        self._tallied = time.monotonic()
        self._tally.write(self._connection)
