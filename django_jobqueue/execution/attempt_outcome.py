"""Turns the value or exception of a handler into an outcome."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from django_jobqueue import logs
from django_jobqueue.domain.arguments import from_json
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.failures import Failure
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb, decide
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.exceptions import Cancel, ClaimLost, JobTimeout
from django_jobqueue.retries import Backoff, from_stored_form
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.text.redaction import mask_text

logger = logging.getLogger("django_jobqueue.attempt")

NO_RESULT: Final = "null"  # JSON text
SUCCEEDED: Final = Outcome(verb=Verb.SUCCEED, result=NO_RESULT)
EXPIRED: Final = Outcome(verb=Verb.EXPIRE)
CANCELLED: Final = Outcome(verb=Verb.CANCEL, reason="cancelled before it started")
STOPPED: Final = Outcome(verb=Verb.RELEASE, reason="the worker stopped first")
BROKEN: Final = Outcome(
    verb=Verb.FAIL,
    end=AttemptEnd.FAILED,
    reason="the worker could not handle the end of this attempt; see its log",
)


class NotWanted(Exception):
    """The handler is not to be called; ``outcome`` is what the job came to."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class HandedOver(NotWanted):
    """An endpoint goes on with the attempt, or may do so: it has not ended."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(Outcome(verb=Verb.HAND_OVER, reason=endpoint))


def named(
    error: BaseException, asked: StopReason, timeout: float | None
) -> BaseException:
    """Return the same error, or for a timeout a JobTimeout with its text."""
    if asked is StopReason.TIME_OUT and (
        isinstance(error, asyncio.CancelledError)
        or (isinstance(error, JobTimeout) and not error.args)
    ):
        return JobTimeout(_too_long(timeout)).with_traceback(error.__traceback__)
    return error


def unresponsive_error(
    asked: StopReason, timeout: float | None, consequence: str
) -> BaseException:
    """The error to record for a handler that was asked to stop, and did not."""
    text = f"did not stop when asked, so {consequence}"
    if asked is StopReason.CANCEL:
        return Cancel(f"it was cancelled, and {text}")
    return JobTimeout(
        f"it ran longer than its timeout of {timeout or 0:g} s, and {text}"
    )


def unrecorded(
    asked: StopReason, error: BaseException, consequence: str
) -> BaseException:
    """The error to record for a handler whose own exception cannot be recorded. The
    exception is not inspected: that may be the step that hangs."""
    text = f"its handler raised {type(error).__name__}; recording that took too long"
    text = f"{text}, so {consequence}"
    return Cancel(text) if asked is StopReason.CANCEL else JobTimeout(text)


def outcome_of(
    error: BaseException,
    *,
    job_type: str,
    policy: Policy,
    attempt: int,
    max_attempts: int | None,
    asked: StopReason,
    given_back: int,
    backoff: str | None,
    context: Callable[[], Context] | None,
    secrets: Collection[str],
) -> Outcome:
    """The outcome of an attempt that raised this, without the secrets of its data.

    ``backoff`` is the job's own, as JSON text. Where ``context`` is None, no code of
    the project is called: its backoff functions do not count.
    """
    if isinstance(error, ClaimLost):
        return Outcome(verb=Verb.RELEASE, reason=str(error))  # will be refused
    outcome = decide(
        error,
        policy=policy,
        attempt=attempt,
        max_attempts=max_attempts,
        asked=asked,
        given_back=given_back,
        backoff=stored_backoff(backoff),
        context=context,
    )
    if outcome.verb not in (Verb.FAIL, Verb.RETRY):
        return replace(outcome, reason=mask_text(outcome.reason, secrets))
    failure = Failure.of(error, job_type=job_type, secrets=secrets)
    return replace(outcome, failure=failure)


def stored_backoff(text: str | None) -> Backoff | None:
    """The backoff that is stored with the job."""
    if text is None:
        return None
    try:
        return from_stored_form(from_json(text))
    except (ValueError, RecursionError):
        logger.warning("Invalid backoff, using the default: %.200s", text)
        return None


def outcome_unstarted(
    job: ClaimedJob, asked: StopReason, max_attempts: int | None, claimed: float
) -> Outcome | None:
    """The outcome of a job that is not to be started; None if it is to be started."""
    if asked is not StopReason.NOTHING:
        if asked is StopReason.CANCEL:
            return CANCELLED
        if asked is StopReason.STOP:
            return STOPPED
    if max_attempts is not None and job.attempts > max_attempts:
        return _no_attempt_left(job, max_attempts)
    if job.expires_in is None or time.monotonic() - claimed < job.expires_in:
        return None
    return EXPIRED


def _no_attempt_left(job: ClaimedJob, max_attempts: int) -> Outcome:
    """The outcome of a claimed job whose limit was lowered while it waited for its next
    attempt. The attempt is given back."""
    made = job.attempts - 1
    reason = f"no attempt is left: {made} made, {max_attempts} allowed"
    logs.log_unstarted(job, reason)
    return Outcome(verb=Verb.FAIL, reason=reason)


def _too_long(timeout: float | None) -> str:
    return f"it ran longer than its timeout of {timeout or 0:g} s"
