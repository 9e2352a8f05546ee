"""Gathers outcomes and writes them in batches, each with its fence."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

import psycopg

from django_jobqueue import rooms, signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.signal_sender import announce_end
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import in_a_line, is_contended
from django_jobqueue.store.partial_batches import BRIEF, apply_in_parts
from django_jobqueue.store.queue import finish, finish_unsuccessful
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.queue.hand_over import hand_over
from django_jobqueue.workers.completing.completed_series import CompletedSeries
from django_jobqueue.workers.completing.counters import Counters
from django_jobqueue.workers.completing.deferred_outcomes import (
    DeferredOutcomes,
    Item,
    contended_for,
    without_content,
)
from django_jobqueue.workers.completing.rate_holds import hold_rates

logger = logging.getLogger("django_jobqueue.worker")

BATCH: Final = 1_000  # jobs; 500 take 7 % longer for each, 200 take 20 %
# Seconds that a burst may gather: as long as the last write took, between these. Where
# processes share the server, each has larger batches.
SHORTEST_GATHER, LONGEST_GATHER = 0.005, 0.05
COUNTERS_EVERY: Final = 10.0  # seconds
CLOSE_AFTER: Final = 60.0  # seconds without an outcome until the connection is closed

Write = Callable[[OwnConnection, Holder, Sequence[Finished], float], set[UUID]]


class Completer(Loop):
    """Finishes what the executors did.

    A lone outcome is written at once; in a burst, whatever gathered while the last
    batch was written, or in a few milliseconds. What cannot be written is kept and
    tried again: an outage of the database runs no finished job again, and an outcome
    that is refused holds up no other.
    """

    name = "completer"

    def __init__(
        self,
        holder: Holder,
        connection: OwnConnection,
        *,
        more_will_end: Callable[[], bool] = lambda: False,
        on_written: Callable[[Sequence[Attempt]], None] = lambda attempts: None,
        write_reports: Callable[[OwnConnection, Sequence[Attempt]], None] | None = None,
        hold_back: Callable[[frozenset[str]], None] = lambda job_types: None,
    ) -> None:
        super().__init__()
        self._holder = holder
        self._connection = connection
        self._more_will_end = more_will_end
        self._on_written = on_written
        self._write_reports = write_reports
        self._gathered: deque[Item] = deque()
        self._writing: list[Item] = []
        self._deferred = DeferredOutcomes(hold_back)
        self._full = threading.Event()
        self._counters = Counters(conf.release)
        self._counters_written_at = time.monotonic()
        self._gathered_by_rooms = tuple(rooms.offered("gathered"))
        self._series: CompletedSeries | None = None
        self._stripped: set[Attempt] = set()  # to be written without their content
        self._may_be_written = False  # the answer to the last write was lost
        self.gather_for = SHORTEST_GATHER  # seconds, if more outcomes are about to come
        self._last_write = -math.inf  # time.monotonic()
        self._is_closing = False

    def add(self, attempt: Attempt, finished: Finished) -> None:
        """Take an outcome, from any thread; the first one of an attempt counts."""
        if attempt.handed_over:
            return
        attempt.handed_over = True
        self._gathered.append((attempt, finished))
        if len(self._gathered) >= BATCH:
            self._full.set()
        self.wake()

    def count_for_metrics(self) -> CompletedSeries:
        """Have it count for metrics, too; before it starts."""
        self._series = CompletedSeries(self._counters)
        return self._series

    @property
    def is_done(self) -> bool:
        """True if everything that was added is written."""
        return not (self._gathered or self._writing or self._deferred.waiting)

    @property
    def unwritten(self) -> int:
        """The number of outcomes that are not written, for whatever reason."""
        return len(self._gathered) + len(self._writing) + len(self._deferred.waiting)

    @property
    def waiting(self) -> int:
        """The number of outcomes that wait while others are written."""
        return len(self._gathered)

    def tick(self) -> float:
        """Write what has gathered."""
        if not self._writing and self._gathered:
            if self._more_will_end() and len(self._gathered) < BATCH:
                self._full.wait(self.gather_for)
            self._full.clear()
            self._writing = self._take()
        if self._writing:
            began = time.monotonic()
            self._write(self._writing)
            took = time.monotonic() - began
            self.gather_for = min(max(took, SHORTEST_GATHER), LONGEST_GATHER)
        if self._deferred.waiting and (due := self._deferred.due()):
            self._write(due)
        if (
            self._has_counts
            and time.monotonic() - self._counters_written_at >= COUNTERS_EVERY
        ):
            self.write_counters()
        due_in = math.inf if self._series is None else self._series.refresh()
        if self._gathered:
            return 0.0
        wait = COUNTERS_EVERY if self._has_counts else self._idle_wait()
        if self._deferred.waiting:
            wait = min(wait, self._deferred.seconds_until_due)
        return min(wait, due_in)

    def close(self) -> None:
        """Write what is left, deferred outcomes last, without waiting for locks; then
        close the connection."""
        self._is_closing = True
        try:
            while self._writing or self._gathered:
                self.tick()
            if self._deferred.waiting:
                self._write(self._deferred.items)
            if self._has_counts:
                self.write_counters()
        except StoreUnavailable:
            logger.warning("The database is unavailable while the worker stops")
        if self._series is not None:
            self._series.refresh(at_once=True)
        if left := self.unwritten:
            logger.error(
                "Could not record the outcome of finished jobs (%d): at-least-once "
                "jobs run again, at-most-once jobs are archived as failed",
                left,
            )
        self._connection.close()

    @property
    def _has_counts(self) -> bool:
        return bool(self._counters) or any(self._gathered_by_rooms)

    def _idle_wait(self) -> float:
        wait = self._last_write + CLOSE_AFTER - time.monotonic()
        if wait > 0:
            return wait
        self._connection.close()
        return FOREVER

    def _take(self) -> list[Item]:
        taken: list[Item] = []
        while self._gathered and len(taken) < BATCH:
            taken.append(self._gathered.popleft())
        return taken

    def _write(self, items: list[Item]) -> None:
        """Write these, one statement for successes and one for all others; hand-overs
        have their own. Raises StoreUnavailable."""
        try:
            # Most have no context, since nobody asked for it.
            with_context = [a for a, _ in items if a.context is not None]
            self._flush_reports([a for a in with_context if a.has_unwritten_report])
            done, succeeded, others, handed_over = _sorted_by_verb(items)
            self._confirm(done, set())
            if others:
                hold_rates(self._connection, others)
            self._write_batch(finish.succeed, succeeded)
            self._write_batch(finish_unsuccessful.end, others)
            self._write_batch(hand_over, handed_over)
        except StoreUnavailable:
            self._may_be_written = True
            raise
        self._may_be_written = False

    def _write_batch(self, write: Write, batch: Sequence[Item]) -> None:
        """Write a batch, but for what the database refuses in it, and what is locked.

        While others hold such locks no batch waits for them for long.
        """
        if not batch:
            return
        write_part = partial(self._write_part, write)
        unwritten = self._write_whole(write_part, batch)
        if not unwritten:
            return
        unwritten = sorted(unwritten, key=contended_for)
        for left in apply_in_parts(self._connection, unwritten, write_part, brief=True):
            if left.is_locked:
                self._defer(left.items, left.error)
            else:
                self._write_stripped(left.items, left.error)

    def _write_whole(
        self, write_part: Callable[[Sequence[Item]], None], batch: Sequence[Item]
    ) -> Sequence[Item]:
        """Write all at once; return what is to be tried in parts instead."""
        if self._is_closing or (self._deferred.waiting and self._deferred.has_locked):
            return batch
        try:
            write_part(batch)
        except psycopg.Error:
            return batch
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
            return self._defer_locked(batch, error)
        return []

    def _write_part(self, write: Write, items: Sequence[Item]) -> None:
        finished = [finished for _, finished in items]
        lost = write(self._connection, self._holder, finished, time.monotonic())
        if self._series is not None:
            self._series.written(finished, self._refused(items, lost) if lost else 0)
        self._confirm(items, lost)

    def _refused(self, items: Sequence[Item], lost: set[UUID]) -> int:
        """How many of the lost ones say that this worker was thought to be dead. A
        callback may come before our outcome."""
        if self._may_be_written:
            return 0
        return sum(f.id in lost and not a.declaration.endpoint for a, f in items)

    def _write_stripped(self, refused: Sequence[Item], error: psycopg.Error) -> None:
        """Write the one outcome that the database refused without its content, or defer
        it."""
        ((attempt, finished),) = refused
        stripped = without_content(finished, error)
        if stripped is None or attempt in self._stripped:
            self._defer(refused, error)
            return
        logger.warning(
            "The database refused the outcome of job %s (%s); it is recorded without "
            "its content: %s",
            finished.id,
            attempt.job.job_type,
            in_a_line(error),
        )
        self._stripped.add(attempt)
        self._write_batch(_write_for(stripped), [(attempt, stripped)])

    def _defer_locked(
        self, batch: Sequence[Item], error: StoreUnavailable
    ) -> Sequence[Item]:
        """Defer those whose rows somebody has locked; return the others."""
        ids = [finished.id for _, finished in batch]
        free = finish_unsuccessful.unlocked(self._connection, ids)
        if locked := [item for item in batch if item[1].id not in free]:
            self._defer(locked, error.__cause__ or error)
        return [item for item in batch if item[1].id in free]

    def _defer(self, items: Sequence[Item], error: BaseException) -> None:
        self._deferred.add(items, error)
        self._remove_from_writing(items)

    def _confirm(self, items: Sequence[Item], lost: set[UUID]) -> None:
        """Record that these are written, except those whose claim is ``lost``: the jobs
        were rescued meanwhile."""
        if not items:
            return
        self._last_write = time.monotonic()
        self._remove_from_writing(items)
        if self._deferred.waiting:
            self._deferred.discard(items)
        self._count(items, lost)
        attempts = [attempt for attempt, _ in items]
        if self._stripped:
            self._stripped.difference_update(attempts)
        self._on_written(attempts)

    def _remove_from_writing(self, items: Sequence[Item]) -> None:
        writing = self._writing
        if len(items) == len(writing) and items[0] is writing[0]:
            self._writing = []
        elif writing:
            gone = {attempt for attempt, _ in items}
            self._writing = [item for item in writing if item[0] not in gone]

    def _count(self, items: Sequence[Item], lost: set[UUID]) -> None:
        """Count the written outcomes, and announce them. What is handed over has not
        ended."""
        if items[0][1].outcome.verb is Verb.HAND_OVER:
            return
        written = items if not lost else [one for one in items if one[1].id not in lost]
        self._counters.add(written)
        if any(signal.receivers for signal in signals.OF_ENDS):
            for attempt, finished in written:
                announce_end(attempt, finished)
        if lost and not self._may_be_written:
            for attempt, finished in items:
                if finished.id in lost and not attempt.declaration.endpoint:
                    logger.info(
                        "Job %s was rescued while it ran here; its outcome (%s) is "
                        "dropped",
                        finished.id,
                        finished.outcome.verb.value,
                    )

    def _flush_reports(self, attempts: list[Attempt]) -> None:
        """Write the reports before the jobs are finished, so that everybody who sees
        the end of a job sees its last report."""
        if not attempts or self._write_reports is None:
            return
        write = partial(self._write_reports, self._connection)
        brief = self._deferred.has_locked or self._is_closing
        for left in apply_in_parts(self._connection, attempts, write, brief=brief):
            logger.warning(
                "The last reports of %d attempts could not be stored: %s",
                len(left.items),
                in_a_line(left.error),
            )

    def write_counters(self) -> None:
        """Add the counts to the roll-ups, and write what features gathered; no outcome
        waits for that."""
        self._counters_written_at = now = time.monotonic()
        try:
            with self._connection.patience(BRIEF):
                self._counters.write(self._connection)
                for gathered in self._gathered_by_rooms:
                    gathered.write(self._connection, self._holder.name)
        except StoreUnavailable as error:
            if not is_contended(error):
                self._counters_written_at = now - COUNTERS_EVERY + error.retry_in
        except psycopg.Error:
            logger.exception("The counts for the roll-ups were refused")


def _sorted_by_verb(
    items: Sequence[Item],
) -> tuple[list[Item], list[Item], list[Item], list[Item]]:
    """Four lists: finished in the handler's own transaction, succeeded, all others, and
    handed over."""
    succeeded = [
        item
        for item in items
        if item[1].outcome.verb is Verb.SUCCEED and not item[0].committed
    ]
    if len(succeeded) == len(items):  # as mostly
        return [], succeeded, [], []
    done = [item for item in items if item[0].committed]
    handed_over = [item for item in items if item[1].outcome.verb is Verb.HAND_OVER]
    sorted_out = {attempt for attempt, _ in (*done, *succeeded, *handed_over)}
    others = [item for item in items if item[0] not in sorted_out]
    return done, succeeded, others, handed_over


def _write_for(finished: Finished) -> Write:
    if finished.outcome.verb is Verb.HAND_OVER:
        return hand_over
    return (
        finish.succeed
        if finished.outcome.verb is Verb.SUCCEED
        else finish_unsuccessful.end
    )
