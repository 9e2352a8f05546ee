"""Atomic jobs: handler and completion in one transaction, with the fence inside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from django.db import transaction

from django_jobqueue.exceptions import LeaseLost
from django_jobqueue.outcomes import Outcome, Verb
from django_jobqueue.store import finish
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.finish import Finished, Holder
from django_jobqueue.workers.attempt import Attempt, call, result_of


def _ignore(attempt: Attempt) -> None:
    """What it tells is written elsewhere."""


def run_atomically(
    attempt: Attempt, holder: Holder, report: Callable[[Attempt], None] = _ignore
) -> Finished:
    """As ``attempt.run``; the handler's effects on the database of the jobs are
    committed together with the job's success, or not at all.

    ``report`` writes what the handler told, on a connection of its own, before that.
    A worker that lost its lease finds the fence changed, and everything is rolled back.
    """
    if unwanted := attempt.unwanted:
        return attempt.finish_unstarted(unwanted)
    attempt.thread = threading.get_ident()
    try:
        try:
            _transaction(attempt, holder, report)
        except BaseException as error:
            attempt.error = error
        attempt.leave()
    except BaseException as late:  # the interruption, after the handler's own end
        attempt.leave()
        if not attempt.settled and attempt.error is None:
            attempt.error = late
    return attempt.finish()


def _transaction(
    attempt: Attempt, holder: Holder, report: Callable[[Attempt], None]
) -> None:
    db, job = DjangoDatabase(), attempt.job
    with transaction.atomic(using=db.alias):
        result = result_of(call(attempt))
        if attempt.is_telling:
            report(attempt)
        now = time.monotonic()
        outcome = Outcome(verb=Verb.SUCCEED, result=result)
        done = Finished(job.id, job.fence, outcome, now - attempt.started, now)
        if finish.succeed(db, holder, [done], now):
            raise LeaseLost(job.id)
    attempt.result, attempt.settled = result, True
