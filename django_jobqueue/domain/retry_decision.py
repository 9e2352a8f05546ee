"""Decides what happens to a job after an attempt: one pure function, ``decide``.

The first rule that fits holds (the guide on retries has the same table):

====  ================================================  =======================
rule  how the attempt ended                             outcome
====  ================================================  =======================
1     the handler returned                              SUCCEED
2     it obeyed a stop of its worker                    RELEASE, attempt unspent
3     ``Cancel``, or it obeyed an operator's cancel     CANCEL
4     the data have an unknown parameter, the first     SNOOZE, attempt unspent
      ten times: newer code may know it
5     ``Snooze``                                        SNOOZE, attempt unspent
6     ``Fail``                                          FAIL
7     its result is not JSON                            FAIL
8     anything else, of an at-most-once job             FAIL
9     the data do not fit the handler                   FAIL
10    an exception in ``permanent``, or not in          FAIL
      ``retry_for``
11    the last attempt, or the backoff raised ``Fail``  FAIL
12    anything else                                     RETRY, attempt spent
====  ================================================  =======================

Rules 2 and 5 do not hold for at-most-once jobs.
"""

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
    """The change to a job after an attempt."""

    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    SNOOZE = "snooze"
    CANCEL = "cancel"
    RELEASE = "release"
    EXPIRE = "expire"


class StopReason(Enum):
    """Why a running handler was asked to stop, if it was."""

    NOTHING = "nothing"
    CANCEL = "cancel"  # by an operator
    STOP = "stop"  # the worker stops
    TIME_OUT = "time out"


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Outcome:
    """The end of an attempt, and the change to its job."""

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
        """The failure group it counts in; None for no failure, or a requested retry."""
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
    """Decide the outcome of an attempt that raised ``error``, or None.

    ``attempt`` counts from 1; ``max_attempts`` None is unlimited; ``given_back``
    counts the claims of this job that spent no attempt.
    """
    if error is None:  # rule 1
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
    """The text of a handler's reason, which may be any object."""
    return clean(text_of(reason), MESSAGE_LENGTH)


def _obeyed(error: BaseException, asked: StopReason, what: StopReason) -> bool:
    """Whether the handler ended because it was asked to."""
    return asked is what and isinstance(error, asyncio.CancelledError | Cancel)


def _is_cancelled(error: BaseException, asked: StopReason) -> bool:
    """Whether the job is to be cancelled; a stop of the worker cancels no job."""
    if asked is StopReason.STOP:
        return False
    return isinstance(error, Cancel) or _obeyed(error, asked, StopReason.CANCEL)


def _is_requested_by_handler(error: BaseException) -> bool:
    """Whether the handler asked for a retry though nothing went wrong: it raised a
    ``Retry`` that has no other exception as its cause."""
    if not isinstance(error, Retry) or error.__cause__ is not None:
        return False
    return error.__context__ is None or error.__suppress_context__


def _timed_out(error: BaseException, asked: StopReason) -> bool:
    return isinstance(error, JobTimeout) or _obeyed(error, asked, StopReason.TIME_OUT)


def _why_not_again(
    error: BaseException, policy: Policy, attempt: int, max_attempts: int | None
) -> str | None:
    """Return the reason that forbids another attempt (rules 6 to 11), or None."""
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
        return "no attempt is left"
    return None


def _wait(error: BaseException, policy: Policy, attempt: int) -> timedelta | None:
    """The wait before the next attempt; None if the backoff policy forbids one."""
    if isinstance(error, Retry) and error.after is not None:
        return within_bounds(error.after)
    try:
        return wait_before_next(policy.backoff, attempt)
    except Fail:
        return None
    except BaseException:  # SystemExit, too, must not end the worker
        logger.exception("The backoff policy failed; the default one is used")
        return wait_before_next(exponential, attempt)
