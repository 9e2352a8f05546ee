"""Attempts of remote workers: each ends by the rules, and in the statements, by which
the attempts of other workers end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import from_json, result_to_json
from django_jobqueue.domain.failures import MESSAGE_LENGTH, Failure
from django_jobqueue.domain.fingerprints import CLASS_LENGTH, Fingerprint, template_of
from django_jobqueue.domain.policy import Policy, attempts_in_force
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb, decide
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import (
    Cancel,
    Fail,
    InvalidResult,
    JobTimeout,
    Retry,
)
from django_jobqueue.execution.attempt_outcome import stored_backoff, unwanted
from django_jobqueue.execution.signal_sender import announce_outcome
from django_jobqueue.http.problems import Problem
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import finish
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.remote_workers import HeldJob, RemoteWorker
from django_jobqueue.text.redaction import Secrets, mask_text, secrets_in
from django_jobqueue.text.sanitizing import clean
from django_jobqueue.workers.completing.counters import Counters

LATE: Final = 5.0  # seconds past its timeout for which an outcome is waited for
DEFAULT_CLASS: Final = "RemoteError"


class RemoteFailure(Exception):
    """What a remote worker says of an attempt that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a remote worker says of an attempt."""

    status: str  # succeeded, failed, cancelled or released
    result: Any = None
    error_class: str = DEFAULT_CLASS
    message: str = ""
    traceback: str = ""
    is_retryable: bool = True
    retry_after: float | None = None  # seconds


class Attempts:
    """Ends attempts of one remote worker."""

    def __init__(self, db: DjangoDatabase, worker: RemoteWorker) -> None:
        self._db = db
        self._holder = Holder(worker.id, worker.name, worker.release)

    def end(self, held: HeldJob, reported: Reported) -> None:
        """End this attempt as its worker says. Raises Problem: if the worker does not
        hold the job any more, and for a result that cannot be stored."""
        secrets = _secrets(held)
        outcome = _outcome(held, reported, secrets)
        if not self._write([(held, _finished(held, outcome))]):
            raise stale_fence()

    def end_late(self, held: Sequence[HeldJob]) -> list[HeldJob]:
        """End the attempts that are past their timeouts; return the others."""
        late = [one for one in held if one.timeout and one.ran > one.timeout + LATE]
        self._write([(one, _finished(one, _timed_out(one))) for one in late])
        return [one for one in held if one not in late]

    def end_unstartable(self, claimed: Sequence[HeldJob]) -> list[HeldJob]:
        """End those that have no attempt left, or were cancelled; return the others."""
        left, ended = [], []
        for one in claimed:
            asked = StopReason.CANCEL if one.is_unwanted else StopReason.NOTHING
            outcome = unwanted(one.job, asked, _policy(one)[1], time.monotonic())
            if outcome is None:
                left.append(one)
            else:
                ended.append((one, _finished(one, outcome)))
        self._write(ended)
        return left

    def _write(self, ended: Sequence[tuple[HeldJob, Finished]]) -> int:
        """Write these outcomes with their counts; return how many were accepted."""
        written: list[tuple[HeldJob, Finished]] = []
        for one in ended:
            if self._db.in_transaction(partial(self._write_one, *one)):
                written.append(one)
        for held, finished in written:
            announce_outcome(finished, held.job.job_type, held.job.attempts)
        return len(written)

    def _write_one(self, held: HeldJob, finished: Finished) -> bool:
        succeeded = finished.outcome.verb is Verb.SUCCEED
        verb = finish.succeed if succeeded else finish.end
        if verb(self._db, self._holder, [finished], time.monotonic()):
            return False
        counters = Counters(self._holder.release)
        counters.add([(held, finished)])
        counters.write(self._db)
        return True


def stale_fence() -> Problem:
    """The problem of a worker that ends what it does not hold."""
    return Problem(
        "stale_fence",
        "The worker does not hold this job with this fence: the outcome was written, "
        "or the job was taken from it.",
    )


def _finished(held: HeldJob, outcome: Outcome) -> Finished:
    now = time.monotonic()
    allowed = _policy(held)[1]
    return Finished(
        held.job.id, held.job.fence, outcome, held.ran, now, max_attempts=allowed
    )


def _policy(held: HeldJob) -> tuple[Policy, int | None]:
    """The policy of its type, and how many attempts the job has."""
    declaration = registry.get(held.job.job_type)
    if declaration is None:
        policy = Policy(
            delivery=Delivery(held.delivery), max_attempts=held.declared_attempts
        )
    else:
        policy = declaration.policy
    return policy, attempts_in_force(
        policy.delivery,
        held.job.max_attempts,
        policy.attempts_allowed,
        held.attempts_override,
    )


def _outcome(held: HeldJob, reported: Reported, secrets: Secrets) -> Outcome:
    if reported.status == "succeeded":
        return Outcome(verb=Verb.SUCCEED, result=_result(reported.result))
    asked = StopReason.STOP if reported.status == "released" else StopReason.NOTHING
    outcome = _decided(held, _error(reported), asked)
    if outcome.verb not in (Verb.FAIL, Verb.RETRY):
        return replace(outcome, reason=mask_text(outcome.reason, secrets))
    return replace(outcome, failure=_failure(held, reported, secrets))


def _decided(held: HeldJob, error: BaseException, asked: StopReason) -> Outcome:
    policy, allowed = _policy(held)
    return decide(
        error,
        policy=policy,
        attempt=held.job.attempts,
        max_attempts=allowed,
        asked=asked,
        backoff=stored_backoff(held.job.backoff),
    )


def _error(reported: Reported) -> BaseException:
    """What a handler would have raised."""
    if reported.status in ("cancelled", "released"):
        return Cancel(reported.message)
    failure = RemoteFailure(reported.message)
    if not reported.is_retryable:
        return Fail(reported.message)
    if reported.retry_after is None:
        return failure
    error = Retry(reported.message, after=timedelta(seconds=reported.retry_after))
    error.__cause__ = failure  # something went wrong: it counts as a failure
    return error


def _result(value: Any) -> str:
    """The JSON of a result. Raises Problem for one that is too large or too deep."""
    if value is None:
        return "null"
    try:
        return result_to_json(value, limit=conf.max_result_bytes)
    except InvalidResult as error:
        raise Problem("invalid_parameter", f"result: {error}") from None


def _failure(held: HeldJob, reported: Reported, secrets: Secrets) -> Failure:
    error_class = clean(reported.error_class or DEFAULT_CLASS, CLASS_LENGTH, secrets)
    template = template_of(RemoteFailure(reported.message), secrets)
    return Failure(
        error_class=error_class,
        message=clean(reported.message, MESSAGE_LENGTH, secrets),
        traceback=clean(reported.traceback, conf.max_traceback_bytes, secrets),
        frames=[],
        fingerprint=Fingerprint.of_parts(error_class, held.job.job_type, template),
    )


def _timed_out(held: HeldJob) -> Outcome:
    error = JobTimeout(
        f"it ran longer than its timeout of {held.timeout or 0:g} s, and its remote "
        "worker reported nothing of it"
    )
    outcome = _decided(held, error, StopReason.TIME_OUT)
    failure = Failure.of(error, job_type=held.job.job_type)
    return replace(outcome, failure=failure)


def _secrets(held: HeldJob) -> Secrets:
    return secrets_in(from_json(held.job.data), held.sensitive)
