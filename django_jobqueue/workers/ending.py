"""From what a handler raised to what is kept of it and done about it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

from django_jobqueue import logs
from django_jobqueue.exceptions import Cancel, JobTimeout, LeaseLost
from django_jobqueue.failures import Failure
from django_jobqueue.outcomes import Asked, Outcome, Verb, decide
from django_jobqueue.policy import Policy
from django_jobqueue.redaction import mask_text
from django_jobqueue.store.rows import ClaimedJob


def named(error: BaseException, asked: Asked, timeout: float | None) -> BaseException:
    """The same error; a timeout says that it is one, however it reached the handler."""
    if asked is Asked.TIME_OUT and (
        isinstance(error, asyncio.CancelledError)
        or (isinstance(error, JobTimeout) and not error.args)
    ):
        return JobTimeout(_too_long(timeout)).with_traceback(error.__traceback__)
    return error


def hopeless(asked: Asked, timeout: float | None, upshot: str) -> BaseException:
    """What is recorded for a handler that was told to stop, and did not."""
    text = f"did not stop when told, so {upshot}"
    if asked is Asked.CANCEL:
        return Cancel(f"it was cancelled, and {text}")
    return JobTimeout(
        f"it ran longer than its timeout of {timeout or 0:g} s, and {text}"
    )


def outcome_of(
    error: BaseException,
    *,
    job_type: str,
    policy: Policy,
    attempt: int,
    max_attempts: int | None,
    asked: Asked,
    secrets: Collection[str],
) -> Outcome:
    """What an attempt that raised this comes to, without the secrets of its data."""
    if isinstance(error, LeaseLost):
        return Outcome(verb=Verb.RELEASE, reason=str(error))  # will be refused
    outcome = decide(
        error,
        policy=policy,
        attempt=attempt,
        max_attempts=max_attempts,
        asked=asked,
    )
    if outcome.verb not in (Verb.FAIL, Verb.RETRY):
        return replace(outcome, reason=mask_text(outcome.reason, secrets))
    failure = Failure.of(error, job_type=job_type, secrets=secrets)
    return replace(outcome, failure=failure)


def no_attempt_left(job: ClaimedJob, max_attempts: int | None) -> Outcome | None:
    """What a claimed job comes to whose limit was lowered while it waited for its next
    attempt; None if it may be started. The attempt is given back."""
    if max_attempts is None or job.attempts <= max_attempts:
        return None
    made = job.attempts - 1
    reason = f"no attempt is left: {made} made, {max_attempts} allowed"
    logs.log_unstarted(job, reason)
    return Outcome(verb=Verb.FAIL, reason=reason)


def _too_long(timeout: float | None) -> str:
    return f"it ran longer than its timeout of {timeout or 0:g} s"
