"""Writes the reports of attempts while they run, and once more when they end."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.queue import reports
from django_jobqueue.store.queue.reports import Report
from django_jobqueue.store.queue.spend import Spent, spend

logger = logging.getLogger("django_jobqueue.worker")

WRITE_EVERY: Final = 1.0  # seconds between two writes of one attempt
APART: Final = 0.1  # seconds between two statements of the process


class Reporter(Loop):
    """Writes the first report of an attempt at once, and later ones at most once a
    second, in one statement for all attempts of the process.

    The completer writes the last state before it finishes the job. Both hold one lock,
    so that an older state never follows a newer one.
    """

    name = "reporter"

    def __init__(
        self,
        worker: str,
        connection: OwnConnection,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._worker = worker
        self._connection = connection
        self._clock = clock
        self._added: deque[Attempt] = deque()
        self._waiting: dict[Attempt, None] = {}  # a set with an order
        self._next = 0.0  # no statement before
        self._lock = threading.Lock()

    def add(self, attempt: Attempt) -> None:
        """Write this attempt's report soon; called from any thread."""
        self._added.append(attempt)
        self.wake()

    def tick(self) -> float:
        """Write what is due."""
        now = self._clock()
        while self._added:
            self._waiting[self._added.popleft()] = None
        if self._waiting and now < self._next:
            return self._next - now
        running = [attempt for attempt in self._waiting if not attempt.over]
        due = [attempt for attempt in running if attempt.reported + WRITE_EVERY <= now]
        if due:
            self._next = now + APART
            self.write(self._connection, due)
        later = [attempt for attempt in running if attempt not in due]
        self._waiting = dict.fromkeys(later)
        first = min((attempt.reported for attempt in later), default=now + FOREVER)
        return max(first + WRITE_EVERY, self._next) - now

    def write(self, connection: Database, attempts: Sequence[Attempt]) -> None:
        """Write the reports that have changed since they were last written.

        Raises StoreUnavailable; then they are to be written again. A report that the
        database refuses is logged and dropped: no job fails because of its report.
        """
        with self._lock:
            telling = [attempt for attempt in attempts if attempt.has_unwritten_report]
            if not telling:
                return
            now = self._clock()
            rows = {attempt: _row(attempt, now) for attempt in telling}
            spent = _spent(rows)
            try:
                if spent:
                    _spend(connection, spent.values())
                    spent = {}
                content = [
                    row
                    for attempt, row in rows.items()
                    if attempt.here().report.has_content
                ]
                if content:
                    reports.write(connection, self._worker, content)
            except StoreUnavailable:
                for attempt in telling:
                    attempt.here().report.is_changed = True
                for attempt, (*_, units) in spent.items():
                    # It may be written: rather twice than not at all, and nothing is
                    # given back twice.
                    attempt.here().report.spend(max(0, units))
                raise
            except psycopg.Error:
                logger.exception(
                    "Could not store the reports of %d attempts", len(telling)
                )
            for attempt in telling:
                attempt.reported = now

    def flush(self, attempt: Attempt) -> None:
        """Write this attempt's report before its transaction commits; if that fails
        now, the completer writes it."""
        with suppress(StoreUnavailable):
            self.write(self._connection, [attempt])

    def close(self) -> None:
        """Let the connection go; the completer writes the last states."""
        self._connection.close()


def _spent(rows: Mapping[Attempt, Report]) -> dict[Attempt, Spent]:
    return {
        one: Spent(one.job.job_type, one.job.limit_key, row.content.spent)
        for one, row in rows.items()
        if row.content.spent
    }


def _spend(connection: Database, spent: Iterable[Spent]) -> None:
    for job_type in sorted(spend(connection, spent)):
        logger.warning(
            "spend() has no effect: %s has no rate that counts weights", job_type
        )


def _row(attempt: Attempt, now: float) -> Report:
    job = attempt.job
    return Report(
        job_id=job.id,
        fence=job.fence,
        number=job.attempts,
        ago=max(0.0, now - attempt.started),
        content=attempt.here().report.take(),
    )
