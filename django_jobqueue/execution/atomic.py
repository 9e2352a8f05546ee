"""Atomic jobs: handler and completion in one transaction, with the fence inside."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.db import OperationalError, connections, transaction

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import ClaimLost, Fail, Snooze
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import call, end, perform
from django_jobqueue.execution.transaction_guard import TransactionGuard
from django_jobqueue.processes.forking import end_if_forked
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.errors import is_conflict
from django_jobqueue.store.queue import finish, release
from django_jobqueue.store.queue.finish import Finished, Holder

logger = logging.getLogger("django_jobqueue.attempt")

CONFLICT_WAIT: Final = 0.1  # seconds
CHANGED_ITSELF: Final = (
    "its own transaction deleted or changed the row of this job in the queue; it was "
    "rolled back"
)


def _ignore(attempt: Attempt) -> None:
    """Its report is written elsewhere."""


def run_atomically(
    attempt: Attempt, holder: Holder, report: Callable[[Attempt], None] = _ignore
) -> Finished:
    """As ``attempt_steps.run``; the handler's effects on the database of the jobs are
    committed together with the job's success, or not at all.

    ``report`` writes the attempt's report before that, on a connection of its own. A
    worker that lost its lease finds another fence, and rolls everything back.
    """
    if outcome := attempt.outcome_unstarted:
        return attempt.finish_unstarted(outcome)  # without a transaction
    perform(attempt, partial(_transaction, holder=holder, report=report))
    return end(attempt)


def _transaction(
    attempt: Attempt, holder: Holder, report: Callable[[Attempt], None]
) -> str:
    try:
        return _try(attempt, holder, report)
    except ClaimLost:
        job = attempt.job
        if release.is_claimed(DjangoDatabase(), job.id, job.fence):
            raise Fail(CHANGED_ITSELF) from None
        raise


def _try(attempt: Attempt, holder: Holder, report: Callable[[Attempt], None]) -> str:
    db, job = DjangoDatabase(), attempt.job
    with transaction.atomic(using=db.alias):
        result = _call_guarded(attempt, connections[db.alias])
        if attempt.has_unwritten_report:
            report(attempt)
        now = time.monotonic()
        outcome = Outcome(verb=Verb.SUCCEED, result=result)
        done = Finished(job.id, job.fence, outcome, now - attempt.started, now)
        if _succeed(db, holder, done, now):
            raise ClaimLost(job.id)
        _guard_hooks(connections[db.alias], attempt, result)
        attempt.begin_commit()
    return result


def _call_guarded(attempt: Attempt, wrapper: Any) -> str:
    """Call the handler. Raises Fail if it ended the transaction."""
    guard = TransactionGuard(wrapper)
    try:
        with wrapper.execute_wrapper(guard):
            result = call(attempt)
    except BaseException:
        end_if_forked()
        guard.check()  # rather this than another attempt
        raise
    guard.check()
    return result


def _succeed(db: DjangoDatabase, holder: Holder, done: Finished, now: float) -> bool:
    """Archive it with the handler's effects; whether the claim was lost.

    Under ``repeatable read`` and ``serializable`` a transaction cannot remove a row
    that was changed since it began, as by who waits for the job, or cancels it. That is
    no failure of the handler: another attempt is made.
    """
    try:
        return bool(finish.succeed(db, holder, [done], now))
    except OperationalError as error:
        if not is_conflict(error):
            raise
        raise Snooze(
            CONFLICT_WAIT, "its row was changed while its transaction was open"
        ) from error


def _guard_hooks(wrapper: Any, attempt: Attempt, result: str) -> None:
    """Note the commit before the first of the transaction's ``on_commit`` hooks; let
    each of them run, whatever those before it raise: the job is archived by then."""
    wrapper.run_on_commit = [
        (set(), partial(attempt.end_commit, result), False),
        *(
            (savepoints, partial(_run_hook, attempt, hook), False)
            for savepoints, hook, _robust in wrapper.run_on_commit
        ),
    ]


def _run_hook(attempt: Attempt, hook: Callable[[], object]) -> None:
    try:
        hook()
    except BaseException:
        logger.exception(
            "Job %s (%s) succeeded, and one of its on_commit hooks failed; the job "
            "does not run again",
            attempt.job.id,
            attempt.job.job_type,
            extra={
                "job_id": str(attempt.job.id),
                "job_type": attempt.job.job_type,
                "attempt": attempt.job.attempts,
            },
        )
