"""Attempts of remote workers and of endpoints: each ends by the rules, and in the
statements, by which the attempts of other workers end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote.remote_workers import HeldJob
from django_jobqueue.domain.arguments import from_json, result_to_json
from django_jobqueue.domain.failures import MESSAGE_LENGTH, Failure
from django_jobqueue.domain.fingerprints import CLASS_LENGTH, Fingerprint, template_of
from django_jobqueue.domain.policy import Policy, attempts_in_force, attempts_left
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.report import Report, TakenReport
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb, decide
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import Cancel, Fail, InvalidArguments, JobTimeout, Retry
from django_jobqueue.execution.attempt_outcome import outcome_unstarted, stored_backoff
from django_jobqueue.execution.signal_sender import announce_outcome
from django_jobqueue.store.connection import Database, DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import finish, finish_unsuccessful
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.queue.holds import Hold, hold
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import Secrets, mask_text, secrets_in
from django_jobqueue.text.sanitizing import clean
from django_jobqueue.workers.completing.counters import Counters

LATE: Final = 5.0  # seconds past its timeout for which an outcome is waited for
DEFAULT_CLASS: Final = "RemoteError"


class RemoteFailure(Exception):
    """Another program's report of an attempt that failed."""


class Reported(NamedTuple):
    """Another program's report of an attempt."""

    status: str  # succeeded, failed, cancelled or released
    result: Any = None
    error_class: str = DEFAULT_CLASS
    message: str = ""
    traceback: str = ""
    is_retryable: bool = True
    retry_after: float | None = None  # seconds
    holds: bool = False  # so long, what shares the rate of the job, too


# Do something in one transaction, with its connection; return what that returns.
Transactions = Callable[[Callable[[Database], bool]], bool]


def in_django(db: DjangoDatabase) -> Transactions:
    """Transactions of the caller's Django connection."""
    return lambda work: db.in_transaction(lambda: work(db))


def in_own(connection: OwnConnection) -> Transactions:
    """Transactions of a connection of the machinery's own."""

    def transact(work: Callable[[Database], bool]) -> bool:
        with connection.transaction() as db:
            return work(db)

    return transact


class HeldAttempts:
    """Ends attempts of one holder: a remote worker, or an endpoint."""

    def __init__(self, transact: Transactions, holder: Holder, who: str) -> None:
        self._transact = transact
        self._holder = holder
        self._who = who  # for messages

    def end_as(self, held: HeldJob, reported: Reported) -> bool:
        """End this attempt as its holder says; False if it does not hold the job any
        more. Raises InvalidResult for a result that cannot be stored."""
        outcome = _outcome(held, reported, _secrets(held))
        return bool(self._write([(held, _finished(held, outcome))]))

    def end_late(self, held: Sequence[HeldJob]) -> list[HeldJob]:
        """End the attempts that are past their timeouts; return the others."""
        late: list[HeldJob] = []
        others: list[HeldJob] = []
        for one in held:
            is_late = one.timeout and one.ran > one.timeout + LATE
            (late if is_late else others).append(one)
        self._write([(one, _finished(one, self._timed_out(one))) for one in late])
        return others

    def end_unstartable(self, claimed: Sequence[HeldJob]) -> list[HeldJob]:
        """End those that have no attempt left, were cancelled, or have data that nobody
        can read; return the others."""
        left, ended = [], []
        for one in claimed:
            asked = StopReason.CANCEL if one.is_unwanted else StopReason.NOTHING
            outcome = outcome_unstarted(
                one.job, asked, _policy(one)[1], time.monotonic()
            )
            outcome = outcome or _unreadable(one)
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
            if self._transact(partial(self._write_one, *one)):
                written.append(one)
        for held, finished in written:
            announce_outcome(finished, held.job.job_type, held.job.attempts)
        return len(written)

    def _write_one(self, held: HeldJob, finished: Finished, db: Database) -> bool:
        succeeded = finished.outcome.verb is Verb.SUCCEED
        verb = finish.succeed if succeeded else finish_unsuccessful.end
        if verb(db, self._holder, [finished], time.monotonic()):
            return False
        if finished.outcome.hold is not None:
            job, seconds = held.job, finished.outcome.hold.total_seconds()
            hold(db, [Hold(job.job_type, job.limit_key, seconds)])
        counters = Counters(self._holder.release)
        counters.add([(held, finished)])
        counters.write(db)
        return True

    def _timed_out(self, held: HeldJob) -> Outcome:
        once = _policy(held)[0].delivery == Delivery.AT_MOST_ONCE
        unknown = "outcome unknown: " if once else ""
        error = JobTimeout(
            f"{unknown}it ran longer than its timeout of {held.timeout or 0:g} s, and "
            f"its {self._who} reported nothing of it"
        )
        outcome = _decided(held, error, StopReason.TIME_OUT)
        failure = Failure.of(error, job_type=held.job.job_type)
        return replace(outcome, failure=failure)


def _unreadable(held: HeldJob) -> Outcome | None:
    """The end of a job whose data we cannot read, as in a worker of Python."""
    try:
        data = from_json(held.job.data)
        problem = "" if isinstance(data, dict) else "the data is not an object"
    except ValueError as error:
        problem = f"the data cannot be read: {error}"
    if not problem:
        return None
    outcome = _decided(held, Fail(problem), StopReason.NOTHING)
    wrong = InvalidArguments(problem)
    return replace(outcome, failure=Failure.of(wrong, job_type=held.job.job_type))


def left_of(held: HeldJob) -> int | None:
    """How many attempts the job has left, with the one that runs; None is unlimited."""
    return attempts_left(_policy(held)[1], held.job.attempts)


def told(
    held: HeldJob, done: float | None, total: float | None, note: str
) -> TakenReport:
    """The progress that its program reports, in the form stored for handlers."""
    report = Report(secrets=lambda: _secrets(held))
    report.progress(done, total, note)
    return report.take()


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
    """The exception that a handler would have raised."""
    if reported.status in ("cancelled", "released"):
        return Cancel(reported.message)
    failure = RemoteFailure(reported.message)
    if not reported.is_retryable:
        return Fail(reported.message)
    if reported.retry_after is None:
        return failure
    wait = timedelta(seconds=reported.retry_after)
    error = Retry(reported.message, after=wait, hold=reported.holds)
    error.__cause__ = failure  # something went wrong: it counts as a failure
    return error


def _result(value: Any) -> str:
    """The JSON of a result. Raises InvalidResult for one that is too large or deep."""
    if value is None:
        return "null"
    return result_to_json(value, limit=conf.max_result_bytes)


def _failure(held: HeldJob, reported: Reported, secrets: Secrets) -> Failure:
    error_class = clean(reported.error_class or DEFAULT_CLASS, CLASS_LENGTH, secrets)
    template = template_of(RemoteFailure(reported.message), secrets)
    return Failure(
        error_class=error_class,
        message=clean(reported.message, MESSAGE_LENGTH, secrets),
        traceback=clean(reported.traceback, conf.max_traceback_bytes, secrets),
        frames=[],
        fingerprint=Fingerprint.of_texts(error_class, held.job.job_type, template),
    )


def _secrets(held: HeldJob) -> Secrets:
    return secrets_in(read_json(held.job.data), held.sensitive)
