"""Attempts that came to something."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django_jobqueue.domain.failures import Failure
from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import finish, finish_unsuccessful
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.rows import ClaimedJob

RAN = 2.0  # seconds
SINCE = 1.0  # seconds between the end of an attempt and its report


def failure(
    message: str = "no such order",
    *,
    template: str | None = None,
    error_class: str = "ValueError",
    frame: str = "shop.jobs:send",
) -> Failure:
    """What is kept of an exception with this message."""
    return Failure(
        error_class=error_class,
        message=message,
        traceback=f"Traceback …\n{error_class}: {message}\n",
        frames=[{"file": "shop/jobs.py", "line": 7, "function": "send"}],
        fingerprint=Fingerprint.of_parts(error_class, frame, template or message),
    )


def succeeded(result: str | None = None) -> Outcome:
    """The handler returned, with this JSON text."""
    return Outcome(verb=Verb.SUCCEED, result=result)


def failed(what: Failure | None = None, reason: str = "no attempt is left") -> Outcome:
    """The last attempt failed."""
    return Outcome(
        verb=Verb.FAIL, end=AttemptEnd.FAILED, reason=reason, failure=what or failure()
    )


def retried(wait: float = 60.0, what: Failure | None = None) -> Outcome:
    """An attempt failed, and there will be another."""
    return Outcome(
        verb=Verb.RETRY,
        end=AttemptEnd.FAILED,
        wait=timedelta(seconds=wait),
        failure=what or failure(),
    )


def snoozed(wait: float = 60.0) -> Outcome:
    """The handler put itself off."""
    return Outcome(
        verb=Verb.SNOOZE,
        end=AttemptEnd.SNOOZED,
        wait=timedelta(seconds=wait),
        reason="later",
    )


RELEASED = Outcome(verb=Verb.RELEASE, end=AttemptEnd.RELEASED, reason="stopped")
CANCELLED = Outcome(verb=Verb.CANCEL, end=AttemptEnd.CANCELLED, reason="not wanted")
NOT_STARTED = Outcome(verb=Verb.CANCEL, reason="cancelled before it started")
EXPIRED = Outcome(verb=Verb.EXPIRE)


def held_by(worker: int, **values: Any) -> Holder:
    """The worker with this id, as it finishes jobs."""
    return Holder(**{"worker_id": worker, "name": "host:1", "release": "r1", **values})


def finished_as(job: ClaimedJob, outcome: Outcome, **values: Any) -> Finished:
    """This attempt took two seconds and ended one second before ``report``."""
    given = {"fence": job.fence, "ran": RAN, "ended": 100.0 - SINCE, **values}
    return Finished(id=job.id, outcome=outcome, **given)


def report(db: Database, holder: Holder, *finished: Finished) -> set[UUID]:
    """Finish these, by the verb for their outcomes; return what was refused."""
    good = [f for f in finished if f.outcome.verb is Verb.SUCCEED]
    others = [f for f in finished if f.outcome.verb is not Verb.SUCCEED]
    refused = finish.succeed(db, holder, good, 100.0) if good else set()
    return refused | (
        finish_unsuccessful.end(db, holder, others, 100.0) if others else set()
    )
