"""Counts outcomes until they are added to the roll-ups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol
from uuid import UUID

from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.domain.series import Series
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import failure_rollup, rollup
from django_jobqueue.store.connection import Database
from django_jobqueue.store.failure_rollup import FailureCount
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.store.rollup import Count
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.workers.completing.attempt_totals import AttemptTotals

# The outcome of the attempt, if it began, and the status of the job, if it is over.
_BECAME: Final[Mapping[Verb, tuple[str | None, ArchivedStatus | None]]] = {
    Verb.SUCCEED: ("succeeded", ArchivedStatus.SUCCEEDED),
    Verb.FAIL: ("failed", ArchivedStatus.FAILED),
    Verb.RETRY: ("retried", None),
    Verb.SNOOZE: ("snoozed", None),
    Verb.CANCEL: ("cancelled", ArchivedStatus.CANCELLED),
    Verb.RELEASE: ("released", None),
    Verb.EXPIRE: (None, ArchivedStatus.EXPIRED),
}


class Counted(Protocol):
    """An attempt, as far as it is counted."""

    @property
    def job(self) -> ClaimedJob:
        """Its job, as it was claimed."""
        ...

    @property
    def waited(self) -> float:
        """Seconds from due to started."""
        ...


class Counters:
    """Counts and times of attempts, by job type and queue, and failures by their
    fingerprint. One thread uses it."""

    def __init__(self, release: str) -> None:
        self.totals: AttemptTotals | None = None  # also since the process started
        self._release = release
        self._counts: dict[tuple[str, str], Count] = {}
        self._failures: dict[tuple[UUID, str], FailureCount] = {}

    def __bool__(self) -> bool:
        return bool(self._counts or self._failures)

    def add(self, items: Iterable[tuple[Counted, Finished]]) -> None:
        """Count these attempts."""
        count = None
        for attempt, finished in items:
            job = attempt.job
            if (
                count is None
                or job.job_type != count.job_type
                or job.queue != count.queue
            ):
                count = self._count_of(job.job_type, job.queue)
            if finished.outcome.verb is Verb.SUCCEED:  # as most do
                count.succeeded += 1
                count.attempt(finished.ran, attempt.waited)
                if job.attempts != 1:
                    count.later_attempts[job.attempts] += 1
            else:
                self._add_unsuccessful(count, attempt, finished)

    def write(self, db: Database) -> None:
        """Add all counts to the roll-ups, and start again from zero; counts that cannot
        be written stay. Raises StoreUnavailable."""
        self._write_counts(db)
        self._write_failures(db)

    def series(self) -> Series:
        """All that was counted since the process started, if there are totals."""
        if self.totals is None:
            return {}
        return self.totals.series(self._counts.values())

    def _count_of(self, job_type: str, queue: str) -> Count:
        key = (job_type, queue)
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = Count(*key, self._release)
        return count

    def _add_unsuccessful(
        self, count: Count, attempt: Counted, finished: Finished
    ) -> None:
        verb = finished.outcome.verb
        outcome, status = _BECAME[verb]
        count.unsuccessful(outcome, status, attempt.job.attempts)
        if verb is not Verb.EXPIRE:
            count.attempt(finished.ran, attempt.waited)
        if (mark := finished.outcome.mark) is not None:
            self._add_failure(mark, count.job_type, verb)

    def _add_failure(self, mark: Fingerprint, job_type: str, verb: Verb) -> None:
        key = (mark.value, job_type)
        count = self._failures.get(key)
        if count is None:
            count = FailureCount.of(mark, job_type, self._release)
            self._failures[key] = count
        if verb is Verb.RETRY:
            count.retried += 1
        else:
            count.failed += 1

    def _write_counts(self, db: Database) -> None:
        counts, self._counts = self._counts, {}
        try:
            if counts:
                rollup.add(db, list(counts.values()))
        except StoreUnavailable:
            self._counts = counts
            raise
        finally:
            if self.totals is not None and not self._counts:
                self.totals.add(counts.values())

    def _write_failures(self, db: Database) -> None:
        failures, self._failures = self._failures, {}
        try:
            if failures:
                failure_rollup.add(db, failures.values())
        except StoreUnavailable:
            self._failures = failures
            raise
