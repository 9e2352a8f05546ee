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
5     ``Snooze``; ``NotDelivered`` of an at-most-once   SNOOZE, attempt unspent
      job, for about an hour
6     ``Fail``                                          FAIL
7     its result is not JSON                            FAIL
8     anything else, of an at-most-once job             FAIL
9     the data do not fit the handler                   FAIL
10    an exception with the rule False                  FAIL
11    the last attempt, by the job or by the            FAIL
      exception's rule, or a backoff raised ``Fail``
12    anything else                                     RETRY, attempt spent
====  ================================================  =======================

Rules 2 and ``Snooze`` do not hold for at-most-once jobs. An attempt that an endpoint
accepted has not ended, and is not decided about: HAND_OVER.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from django_jobqueue.domain.arguments import UnknownParameters
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.failures import MESSAGE_LENGTH, Failure
from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.retry_rules import ExceptionRule, rule_for
from django_jobqueue.domain.states import AttemptEnd, Delivery
from django_jobqueue.exceptions import (
    Cancel,
    Fail,
    InvalidArguments,
    InvalidResult,
    JobTimeout,
    NotDelivered,
    Retry,
    Snooze,
)
from django_jobqueue.retries import (
    Backoff,
    describe,
    exponential,
    stored_form,
    wait_after,
    within_bounds,
)
from django_jobqueue.text.sanitizing import clean, text_of

logger = logging.getLogger("django_jobqueue.attempt")

AT_MOST_ONCE: Final = "an at-most-once job is not started again"
# How often a job whose data this code does not understand is left to newer code. With
# waits of 1, 2, 4 ... 60 s that is five minutes: a deployment.
MOST_GIVEN_BACK: Final = 10
LONGEST_GIVEN_BACK: Final = 60.0  # seconds
# How often an at-most-once job is put off because its endpoint cannot be reached. With
# the same waits that is about an hour.
MOST_NOT_DELIVERED: Final = 64


class Verb(Enum):
    """The change to a job after an attempt."""

    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    SNOOZE = "snooze"
    CANCEL = "cancel"
    RELEASE = "release"
    EXPIRE = "expire"
    HAND_OVER = "hand over"  # to an endpoint, which goes on with the attempt


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
    hold: timedelta | None = None  # for so long nothing starts that shares its rate

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
    backoff: Backoff | None = None,
    context: Callable[[], Context] | None = None,
) -> Outcome:
    """Decide the outcome of an attempt that raised ``error``, or None.

    ``attempt`` counts from 1; ``max_attempts`` None is unlimited; ``given_back``
    counts the claims of this job that spent no attempt; ``backoff`` is the job's own,
    and ``context`` is for backoffs that are functions, which do not count without it.
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
        # The handler was not called, so this is right for at-most-once jobs, too.
        return _given_back(given_back, _storable(f"left to newer code: {error}"))
    if isinstance(error, Snooze) and not once:
        return Outcome(
            verb=Verb.SNOOZE,
            wait=within_bounds(error.for_),
            end=AttemptEnd.SNOOZED,
            reason=_storable(error.reason),
        )
    if once and _may_be_sent_later(error, given_back):
        return _given_back(given_back, _storable(error))
    end = AttemptEnd.TIMED_OUT if _timed_out(error, asked) else AttemptEnd.FAILED
    rule = None if isinstance(error, Retry) else rule_for(error, policy.retry)
    reason = _why_not_again(error, policy, rule, attempt, max_attempts)
    hold = _hold(error)
    if reason is not None:
        return Outcome(verb=Verb.FAIL, end=end, reason=reason, hold=hold)
    try:
        wait, reason = _wait(error, _backoffs(policy, rule, backoff), attempt, context)
    except Fail:
        return Outcome(verb=Verb.FAIL, end=end, reason="the backoff policy said so")
    return Outcome(
        verb=Verb.RETRY,
        wait=wait,
        end=end,
        reason=reason,
        handler_requested=_is_requested_by_handler(error),
        hold=hold,
    )


def _may_be_sent_later(error: BaseException, given_back: int) -> bool:
    """True if nothing was sent to the endpoint, and there is time left for it."""
    return isinstance(error, NotDelivered) and 0 <= given_back < MOST_NOT_DELIVERED


def _given_back(times: int, reason: str) -> Outcome:
    """Put off a job on which nothing was done, longer each time."""
    return Outcome(
        verb=Verb.SNOOZE,
        wait=timedelta(seconds=min(2.0 ** min(times, 10), LONGEST_GIVEN_BACK)),
        end=AttemptEnd.SNOOZED,
        reason=reason,
    )


def _storable(reason: object) -> str:
    """The text of a handler's reason, which may be any object."""
    return clean(text_of(reason), MESSAGE_LENGTH)


def _obeyed(error: BaseException, asked: StopReason, what: StopReason) -> bool:
    """True if the handler ended because it was asked to."""
    return asked is what and isinstance(error, asyncio.CancelledError | Cancel)


def _is_cancelled(error: BaseException, asked: StopReason) -> bool:
    """True if the job is to be cancelled; a stop of the worker cancels no job."""
    if asked is StopReason.STOP:
        return False
    return isinstance(error, Cancel) or _obeyed(error, asked, StopReason.CANCEL)


def _is_requested_by_handler(error: BaseException) -> bool:
    """True if the handler asked for a retry though nothing went wrong: it raised a
    ``Retry`` that has no other exception as its cause."""
    if not isinstance(error, Retry) or error.__cause__ is not None:
        return False
    return error.__context__ is None or error.__suppress_context__


def _hold(error: BaseException) -> timedelta | None:
    """How long the handler asked to hold back what shares the rate of its job."""
    if isinstance(error, Retry) and error.hold and error.after is not None:
        return within_bounds(error.after)
    return None


def _timed_out(error: BaseException, asked: StopReason) -> bool:
    return isinstance(error, JobTimeout) or _obeyed(error, asked, StopReason.TIME_OUT)


def _why_not_again(
    error: BaseException,
    policy: Policy,
    rule: ExceptionRule | None,
    attempt: int,
    max_attempts: int | None,
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
    if rule is not None and not rule.is_retried:
        return f"{rule.name} is not retried"
    if max_attempts is not None and attempt >= max_attempts:
        return "no attempt is left"
    if rule is not None and rule.max_attempts and attempt >= rule.max_attempts:
        return f"no attempt is left for {rule.name}"
    return None


def _backoffs(
    policy: Policy, rule: ExceptionRule | None, own: Backoff | None
) -> Iterator[tuple[Backoff, str]]:
    """The backoffs to ask, one after the other, and why each of them: nothing to say of
    that of the job type."""
    if rule is not None and rule.backoff is not None:
        yield rule.backoff, f"the wait for {rule.name}"
    if own is not None:
        yield own, "the wait of this job"
    yield policy.backoff, ""
    yield exponential, "the default wait"


def _wait(
    error: BaseException,
    backoffs: Iterator[tuple[Backoff, str]],
    attempt: int,
    context: Callable[[], Context] | None,
) -> tuple[timedelta, str]:
    """The wait before the next attempt, and why this one. Raises Fail if a backoff
    forbids another attempt."""
    if isinstance(error, Retry) and error.after is not None:
        return within_bounds(error.after), ""
    for backoff, why in backoffs:
        if context is None and stored_form(backoff) is None:
            continue
        try:
            wait = wait_after(backoff, attempt, error, context)
        except Fail:
            raise
        except BaseException:  # SystemExit, too, must not end the worker
            logger.exception(
                "The backoff %s failed; the next one is used", describe(backoff)
            )
        else:
            if wait is not None:
                return wait, why
    raise AssertionError("exponential returns a wait")
