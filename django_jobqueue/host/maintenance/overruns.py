"""Attempts that exceeded their timeout in a process that was killed for it. Each fails
as if its own worker had recorded it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import psycopg

from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import Policy, attempts_in_force
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import StopReason, Verb
from django_jobqueue.domain.states import ArchivedStatus, Delivery
from django_jobqueue.exceptions import JobTimeout
from django_jobqueue.execution.attempt_outcome import outcome_of
from django_jobqueue.execution.lost_attempts import log_timed_out, report_lost
from django_jobqueue.execution.signal_sender import announce_outcome, announcer
from django_jobqueue.observers import LostAttempt, trace_of
from django_jobqueue.store import failure_rollup, rollup
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.failure_rollup import FailureCount
from django_jobqueue.store.queue import finish_unsuccessful
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.queue.overrun import Overrun, overrun
from django_jobqueue.store.queue.rescue import held
from django_jobqueue.store.rollup import Count

HELD_THE_LOCK: Final = (
    "it ran longer than its timeout of {timeout:g} s and could not be asked to stop, "
    "because it held the interpreter's lock; its worker process was killed"
)

logger = logging.getLogger("django_jobqueue.maintenance")

Ended = tuple[Overrun, Finished]


@dataclass(slots=True)
class Overruns:
    """Applies the policy of the job type, as for any failed attempt, and writes the
    outcome in the name of the dead worker. Like a JobRecovery, it can be run again
    after an outage, and reports each job once. Jobs that the database refuses to finish
    are left to be rescued."""

    worker: int
    ids: Sequence[UUID]
    counts: list[Count] = field(default_factory=list)  # of what is written
    _unsure: list[Ended] = field(default_factory=list)

    def run(self, db: OwnConnection) -> None:
        """Do all of it. Raises StoreUnavailable."""
        self._settle(db)
        try:
            with db.transaction() as transaction:
                self._unsure = self._write(transaction)
        except psycopg.Error:
            self._unsure = []
            logger.exception("Timeouts of %s cannot be written", self.ids)
        ended, self._unsure = self._unsure, []
        self._report(ended)

    def _settle(self, db: OwnConnection) -> None:
        if self._unsure:
            still = set(held(db, [self.worker], [row.id for row, _ in self._unsure]))
            ended = [one for one in self._unsure if one[0].id not in still]
            self._unsure = []
            self._report(ended)

    def _report(self, ended: Sequence[Ended]) -> None:
        self.counts += _counts_of(ended)
        _announce(ended)

    def _write(self, db: Database) -> list[Ended]:
        ended = [(row, _finished(row)) for row in overrun(db, self.worker, self.ids)]
        if not ended:
            return []
        first = ended[0][0]
        holder = Holder(self.worker, first.worker, first.release)
        now = time.monotonic()
        refused = finish_unsuccessful.end(
            db, holder, [finished for _, finished in ended], now
        )
        ended = [(row, done) for row, done in ended if done.id not in refused]
        _count(db, ended)
        return ended


def _finished(row: Overrun) -> Finished:
    """The outcome of this attempt."""
    declaration = registry.get(row.job_type)
    if declaration is None:  # imported late, by the process that is gone
        policy = Policy(
            delivery=Delivery(row.delivery), max_attempts=row.declared_attempts
        )
    else:
        policy = declaration.policy
    allowed = attempts_in_force(
        policy.delivery,
        row.own_attempts,
        policy.attempts_allowed,
        row.attempts_override,
    )
    outcome = outcome_of(
        JobTimeout(HELD_THE_LOCK.format(timeout=row.timeout or 0)),
        job_type=row.job_type,
        policy=policy,
        attempt=row.attempt,
        max_attempts=allowed,
        asked=StopReason.TIME_OUT,
        given_back=0,
        backoff=row.own_backoff,
        context=None,  # this process must go on, whatever a backoff does
        secrets=(),
    )
    return Finished(
        row.id, row.fence, outcome, row.ran, time.monotonic(), max_attempts=allowed
    )


def _count(db: Database, ended: Sequence[Ended]) -> None:
    """Count the attempts in the roll-ups, as the worker would have."""
    failures: list[FailureCount] = []
    for row, finished in ended:
        retried = finished.outcome.verb is Verb.RETRY
        if mark := finished.outcome.mark:
            failure = FailureCount.of(mark, row.job_type, conf.release)
            failure.retried, failure.failed = int(retried), int(not retried)
            failures.append(failure)
    if ended:
        rollup.add(db, _counts_of(ended))
        failure_rollup.add(db, failures)


def _counts_of(ended: Sequence[Ended]) -> list[Count]:
    counts: dict[tuple[str, str, str], Count] = {}
    for row, finished in ended:
        key = (row.job_type, row.queue, conf.release)
        count = counts.setdefault(key, Count(*key))
        count.attempt(ran=row.ran, waited=row.waited)
        retried = finished.outcome.verb is Verb.RETRY
        if retried:
            count.unsuccessful("retried", None, row.attempt)
        else:
            count.unsuccessful("failed", ArchivedStatus.FAILED, row.attempt)
    return list(counts.values())


def _announce(ended: Sequence[Ended]) -> None:
    for row, finished in ended:
        log_timed_out(finished, row.job_type, row.attempt)
        announce_outcome(finished, row.job_type, row.attempt)
        report_lost(_lost(row, finished), announcer.send)


def _lost(row: Overrun, finished: Finished) -> LostAttempt:
    return LostAttempt(
        id=row.id,
        job_type=row.job_type,
        queue=row.queue,
        attempt=row.attempt,
        crashes=row.crashes,
        seconds=row.ran,
        waited=row.waited,
        worker=row.worker,
        outcome=finished.outcome,
        trace=trace_of(row.metadata),
    )
