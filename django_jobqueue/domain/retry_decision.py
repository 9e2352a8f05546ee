"""What an attempt came to, and ``decide``: the whole retry state machine, as one pure
function."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from django_jobqueue.domain.arguments import UnknownParameters
from django_jobqueue.domain.failures import MESSAGE_LENGTH, Failure
from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.states import AttemptEnd, Delivery
from django_jobqueue.exceptions import (
    Cancel,
    Fail,
    InvalidArguments,
    InvalidResult,
    JobTimeout,
    Retry,
    Snooze,
)
from django_jobqueue.retries import exponential, wait_before_next, within_bounds
from django_jobqueue.text.sanitizing import clean, text_of

logger = logging.getLogger(__name__)

AT_MOST_ONCE: Final = "an at-most-once job is not started again"
# How often a job whose data this code does not understand is left to newer code. With
# waits of 1, 2, 4 ... 60 s that is five minutes: a deployment.
MOST_GIVEN_BACK: Final = 10
LONGEST_GIVEN_BACK: Final = 60.0  # seconds


class Verb(Enum):
    """What is done with a job after an attempt."""

    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    SNOOZE = "snooze"
    CANCEL = "cancel"
    RELEASE = "release"
    EXPIRE = "expire"


class StopReason(Enum):
    """What a running handler was told to do, if anything, before it ended."""

    NOTHING = "nothing"
    CANCEL = "cancel"  # by an operator
    STOP = "stop"  # the worker stops
    TIME_OUT = "time out"


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Outcome:
    """What an attempt came to."""

    # Not frozen: that would take a tenth of the time that our part of an attempt takes.

    verb: Verb
    result: str | None = None  # JSON text, when it succeeded
    wait: timedelta = timedelta(0)  # before the next attempt
    end: AttemptEnd | None = None  # None when it succeeded
    reason: str = ""
    failure: Failure | None = None
    handler_requested: bool = False  # the handler asked for it: nothing went wrong

    @property
    def mark(self) -> Fingerprint | None:
        """Which failures it counts among; None if it is no failure, or a polite one."""
        if self.failure is None or self.handler_requested:
            return None
        return self.failure.fingerprint


def decide(
    error: BaseException | None,
    *,
    policy: Policy,
    attempt: int,
    max_attempts: int | None,
    asked: StopReason = StopReason.NOTHING,
    given_back: int = 0,
) -> Outcome:
    """What is to be done after an attempt that raised ``error``, or None.

    ``attempt`` counts from 1; ``max_attempts`` is the effective one, None without end.
    ``given_back``: how many claims of this job spent no attempt.
    """
    if error is None:
        return Outcome(verb=Verb.SUCCEED)
    once = policy.delivery == Delivery.AT_MOST_ONCE
    if _obeyed(error, asked, StopReason.STOP) and not once:
        return Outcome(verb=Verb.RELEASE, end=AttemptEnd.RELEASED, reason="stopped")
    if _is_cancelled(error, asked):
        why = _storable(error)
        return Outcome(verb=Verb.CANCEL, end=AttemptEnd.CANCELLED, reason=why)
    if isinstance(error, UnknownParameters) and 0 <= given_back < MOST_GIVEN_BACK:
        return _left_to_newer_code(error, given_back)
    if isinstance(error, Snooze) and not once:
        return Outcome(
            verb=Verb.SNOOZE,
            wait=within_bounds(error.for_),
            end=AttemptEnd.SNOOZED,
            reason=_storable(error.reason),
        )
    end = AttemptEnd.TIMED_OUT if _timed_out(error, asked) else AttemptEnd.FAILED
    reason = _why_not_again(error, policy, attempt, max_attempts)
    if reason is not None:
        return Outcome(verb=Verb.FAIL, end=end, reason=reason)
    wait = _wait(error, policy, attempt)
    if wait is None:
        return Outcome(verb=Verb.FAIL, end=end, reason="the backoff policy said so")
    requested = _is_requested_by_handler(error)
    return Outcome(verb=Verb.RETRY, wait=wait, end=end, handler_requested=requested)


def _left_to_newer_code(error: UnknownParameters, given_back: int) -> Outcome:
    """The handler was not called, so this is right for at-most-once jobs, too."""
    return Outcome(
        verb=Verb.SNOOZE,
        wait=timedelta(seconds=min(2.0**given_back, LONGEST_GIVEN_BACK)),
        end=AttemptEnd.SNOOZED,
        reason=_storable(f"left to newer code: {error}"),
    )


def _storable(reason: object) -> str:
    """What a handler gave as a reason, which may be anything."""
    return clean(text_of(reason), MESSAGE_LENGTH)


def _obeyed(error: BaseException, asked: StopReason, what: StopReason) -> bool:
    """Whether the handler ended because it was asked to."""
    return asked is what and isinstance(error, asyncio.CancelledError | Cancel)


def _is_cancelled(error: BaseException, asked: StopReason) -> bool:
    """Whether the job is not wanted any more; to stop the worker is not to cancel."""
    if asked is StopReason.STOP:
        return False
    return isinstance(error, Cancel) or _obeyed(error, asked, StopReason.CANCEL)


def _is_requested_by_handler(error: BaseException) -> bool:
    """Whether the handler asked to be retried though nothing went wrong: a ``Retry``
    that no other exception led to."""
    if not isinstance(error, Retry) or error.__cause__ is not None:
        return False
    return error.__context__ is None or error.__suppress_context__


def _timed_out(error: BaseException, asked: StopReason) -> bool:
    return isinstance(error, JobTimeout) or _obeyed(error, asked, StopReason.TIME_OUT)


def _why_not_again(
    error: BaseException, policy: Policy, attempt: int, max_attempts: int | None
) -> str | None:
    """The rule that forbids another attempt; None if there will be one."""
    if isinstance(error, Fail):
        return "the handler said so"
    if isinstance(error, InvalidResult):
        return "the result is not JSON"
    if policy.delivery == Delivery.AT_MOST_ONCE:
        return AT_MOST_ONCE
    if isinstance(error, InvalidArguments):
        return "the data does not fit the handler"
    if not isinstance(error, Retry):
        if isinstance(error, policy.permanent):
            return "this exception is permanent"
        if policy.retry_for and not isinstance(error, policy.retry_for):
            return "this exception is not in retry_for"
    if max_attempts is not None and attempt >= max_attempts:
        return f"attempt {attempt} of {max_attempts}"
    return None


def _wait(error: BaseException, policy: Policy, attempt: int) -> timedelta | None:
    """How long to wait for the next attempt; None if the policy wants none."""
    if isinstance(error, Retry) and error.after is not None:
        return within_bounds(error.after)
    try:
        return wait_before_next(policy.backoff, attempt)
    except Fail:
        return None
    except BaseException:  # SystemExit, too, must not end the worker
        logger.exception("The backoff policy failed; the default one is used")
        return wait_before_next(exponential, attempt)
