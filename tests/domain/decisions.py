"""The table of decisions: what an attempt raised, what was known, what is done."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import (
    Cancel,
    Fail,
    InvalidArguments,
    InvalidResult,
    JobTimeout,
    NotDelivered,
    Retry,
    RetryRule,
    Snooze,
)
from django_jobqueue.domain.arguments import UnknownParameters
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.option_checks import to_backoff
from django_jobqueue.domain.retry_decision import (
    AT_MOST_ONCE,
    Outcome,
    StopReason,
    Verb,
    decide,
)
from django_jobqueue.domain.states import AttemptEnd, Delivery
from tests.domain.made import context

HOUR = timedelta(hours=1)
SIGNATURE = "the data does not fit the handler"
NOT_JSON = "the result is not JSON"
ONCE = {"delivery": Delivery.AT_MOST_ONCE}
STOPPED = {"asked": StopReason.STOP}
CANCELLED = {"asked": StopReason.CANCEL}
TIMED_OUT = {"asked": StopReason.TIME_OUT}
NO_STOCK = ValueError("no stock")
NOTHING = {"retry": {BaseException: False}}
ONLY_OS_ERRORS = {"retry": {OSError: True, Exception: False}}
OWN = "the wait of this job"
CONTEXT = context(crashes=1)
NO_ATTEMPT = "no attempt is left"
AWAY = NotDelivered("shipping is away")
NEWER = UnknownParameters("send() has no parameter 'copy'.")


class TwoBases(ValueError, OSError):
    """An exception of two kinds."""


def seconds_of_attempt(attempt: int) -> timedelta:
    """A backoff that shows the number of the attempt."""
    return timedelta(seconds=attempt)


def seconds_in_error(attempt: int, exception: BaseException, job: Context) -> float:
    """A backoff that reads the error."""
    return float(str(exception))


def nothing(attempt: int, exception: BaseException, job: Context) -> None:
    """A backoff that leaves the wait to the next one."""


def no_more(attempt: int) -> timedelta:
    """A backoff that wants no further attempt."""
    raise Fail("enough")


def decided(
    error: BaseException | None,
    *,
    attempt: int = 2,
    max_attempts: int | None = 5,
    asked: StopReason = StopReason.NOTHING,
    given_back: int = 0,
    own: Any = None,
    **options: Any,
) -> Outcome:
    """The decision about the second of five attempts, unless said otherwise; ``own`` is
    the backoff of the job."""
    return decide(
        error,
        policy=policy_of("tests", {"backoff": seconds_of_attempt, **options}),
        backoff=to_backoff(own),
        context=lambda: CONTEXT,
        attempt=attempt,
        max_attempts=max_attempts,
        asked=asked,
        given_back=given_back,
    )


def caused(
    error: BaseException, cause: BaseException | None = NO_STOCK
) -> BaseException:
    """As ``raise error from cause`` makes it."""
    error.__context__ = NO_STOCK
    error.__cause__ = cause
    return error


def handling(error: BaseException) -> BaseException:
    """As a raise inside of an ``except`` makes it."""
    error.__context__ = NO_STOCK
    return error


def succeeded() -> Outcome:
    return Outcome(verb=Verb.SUCCEED)


def retried(
    wait: float = 2, end: AttemptEnd = AttemptEnd.FAILED, reason: str = ""
) -> Outcome:
    seconds = timedelta(seconds=wait)
    return Outcome(verb=Verb.RETRY, wait=seconds, end=end, reason=reason)


def put_off(wait: float = 2, reason: str = "") -> Outcome:
    """Retried because the handler asked for it."""
    return replace(retried(wait, reason=reason), handler_requested=True)


def never(name: str) -> Outcome:
    """Failed by the rule of this class."""
    return failed(f"{name} is not retried")


def failed(reason: str, end: AttemptEnd = AttemptEnd.FAILED) -> Outcome:
    return Outcome(verb=Verb.FAIL, end=end, reason=reason)


def cancelled(reason: str) -> Outcome:
    return Outcome(verb=Verb.CANCEL, end=AttemptEnd.CANCELLED, reason=reason)


def snoozed(wait: timedelta, reason: str = "") -> Outcome:
    return Outcome(verb=Verb.SNOOZE, wait=wait, end=AttemptEnd.SNOOZED, reason=reason)


def released() -> Outcome:
    return Outcome(verb=Verb.RELEASE, end=AttemptEnd.RELEASED, reason="stopped")


def case(
    name: str, error: BaseException | None, given: dict[str, Any], outcome: Outcome
) -> Any:
    return pytest.param(error, given, outcome, id=name)


def left(wait: float) -> Outcome:
    """To newer code."""
    return snoozed(timedelta(seconds=wait), f"left to newer code: {NEWER}")


def away(wait: float) -> Outcome:
    """To when the endpoint can be reached."""
    return snoozed(timedelta(seconds=wait), "shipping is away")


CASES = [
    case("unknown parameter", NEWER, {}, left(1)),
    case("unknown parameter, last attempt", NEWER, {"attempt": 5}, left(1)),
    case("unknown parameter, at most once", NEWER, ONCE, left(1)),
    case("unknown parameter again", NEWER, {"given_back": 4}, left(16)),
    case("unknown parameter, the last time", NEWER, {"given_back": 9}, left(60)),
    case(
        "unknown parameter too often",
        NEWER,
        {"given_back": 10},
        failed("the data does not fit the handler"),
    ),
    case(
        "unknown parameter, at most once, too often",
        NEWER,
        {**ONCE, "given_back": 10},
        failed(AT_MOST_ONCE),
    ),
    case(
        "unknown parameter, without a claim",
        NEWER,
        {"given_back": -1},
        failed("the data does not fit the handler"),
    ),
    case("not delivered", AWAY, {}, retried()),
    case("not delivered, the last time", AWAY, {"attempt": 5}, failed(NO_ATTEMPT)),
    case("not delivered, at most once", AWAY, ONCE, away(1)),
    case(
        "not delivered, at most once, again", AWAY, {**ONCE, "given_back": 63}, away(60)
    ),
    case(
        "not delivered, at most once, for an hour",
        AWAY,
        {**ONCE, "given_back": 64},
        failed(AT_MOST_ONCE),
    ),
    case(
        "not delivered, at most once, without a claim",
        AWAY,
        {**ONCE, "given_back": -1},
        failed(AT_MOST_ONCE),
    ),
    case("nothing raised", None, {}, succeeded()),
    case("nothing raised, last attempt", None, {"attempt": 5}, succeeded()),
    case("nothing raised, told to stop", None, STOPPED, succeeded()),
    case("nothing raised, cancelled too late", None, CANCELLED, succeeded()),
    case("nothing raised, timed out too late", None, TIMED_OUT, succeeded()),
    case("at most once, nothing raised", None, ONCE, succeeded()),
    # An exception of the handler's.
    case("any exception", ValueError("no"), {}, retried()),
    case("the first attempt", ValueError(), {"attempt": 1}, retried(1)),
    case(
        "the last attempt", ValueError(), {"attempt": 5}, failed("no attempt is left")
    ),
    case(
        "more attempts than allowed, after the limit was lowered",
        ValueError(),
        {"attempt": 7},
        failed("no attempt is left"),
    ),
    case(
        "one attempt allowed",
        ValueError(),
        {"attempt": 1, "max_attempts": 1},
        failed("no attempt is left"),
    ),
    case(
        "attempts without end",
        ValueError(),
        {"attempt": 9_999, "max_attempts": None},
        retried(9_999),
    ),
    case("sys.exit()", SystemExit(0), {}, retried()),
    case("Ctrl-C raised by the handler", KeyboardInterrupt(), {}, retried()),
    case("GeneratorExit", GeneratorExit(), {}, retried()),
    case("out of memory", MemoryError(), {}, retried()),
    case("CancelledError of its own", asyncio.CancelledError(), {}, retried()),
    case("a group", ExceptionGroup("two", [ValueError()]), {}, retried()),
    # The four words.
    case("Cancel", Cancel("sold out"), {}, cancelled("sold out")),
    case("Cancel without a reason", Cancel(), {}, cancelled("cancelled")),
    case("Cancel in the last attempt", Cancel("x"), {"attempt": 5}, cancelled("x")),
    case("Cancel, at most once", Cancel("x"), ONCE, cancelled("x")),
    case("Cancel, not retried", Cancel("x"), NOTHING, cancelled("x")),
    case("Snooze", Snooze(HOUR, "later"), {}, snoozed(HOUR, "later")),
    case("Snooze in seconds", Snooze(90), {}, snoozed(timedelta(seconds=90))),
    case("Snooze into the past", Snooze(-1), {}, snoozed(timedelta(0))),
    case("Snooze in the last attempt", Snooze(HOUR), {"attempt": 5}, snoozed(HOUR)),
    case(
        "Snooze, not retried",
        Snooze(9),
        NOTHING,
        snoozed(timedelta(seconds=9)),
    ),
    case("Snooze, at most once", Snooze(HOUR), ONCE, failed(AT_MOST_ONCE)),
    case("Fail", Fail("no such order"), {}, failed("the handler said so")),
    case(
        "a backoff that raises Fail",
        ValueError(),
        {"backoff": no_more},
        failed("the backoff policy said so"),
    ),
    case("Fail, at most once", Fail("no"), ONCE, failed("the handler said so")),
    case(
        "Fail, and every exception is retried",
        Fail("no"),
        {"retry": {BaseException: True}},
        failed("the handler said so"),
    ),
    case("Retry", Retry("again"), {}, put_off()),
    case("Retry after seconds", Retry(after=60), {}, put_off(60)),
    case("Retry after a timedelta", Retry(after=HOUR), {}, put_off(3_600)),
    case("Retry at once", Retry(after=0), {}, put_off(0)),
    case("Retry into the past", Retry(after=-5), {}, put_off(0)),
    case(
        "Retry, attempts used up",
        Retry(after=60),
        {"attempt": 5},
        failed("no attempt is left"),
    ),
    case(
        "Retry, attempts without end",
        Retry(after=60),
        {"attempt": 5, "max_attempts": None},
        put_off(60),
    ),
    case("Retry because of an exception", caused(Retry(after=60)), {}, retried(60)),
    case("Retry while another is handled", handling(Retry()), {}, retried()),
    case("Retry from None", caused(Retry(), None), {}, put_off()),
    case("Retry, at most once", Retry(after=60), ONCE, failed(AT_MOST_ONCE)),
    case("Retry, where nothing is retried", Retry(), NOTHING, put_off()),
    case("Retry because of one that is not", caused(Retry()), NOTHING, retried()),
    # What a job type says about exceptions.
    case("not retried", KeyError("x"), {"retry": {KeyError: False}}, never("KeyError")),
    case(
        "a subclass of one that is not",
        KeyError("x"),
        {"retry": {(ValueError, LookupError): False}},
        never("LookupError"),
    ),
    case("no rule fits", ValueError(), {"retry": {LookupError: False}}, retried()),
    case("the only one that is retried", OSError(), ONLY_OS_ERRORS, retried()),
    case("a subclass of that", ConnectionError(), ONLY_OS_ERRORS, retried()),
    case("another one", ValueError(), ONLY_OS_ERRORS, never("Exception")),
    case("sys.exit() is no Exception", SystemExit(1), ONLY_OS_ERRORS, retried()),
    case("sys.exit()", SystemExit(1), NOTHING, never("BaseException")),
    case(
        "the nearest class",
        FileNotFoundError(),
        {"retry": {OSError: HOUR, FileNotFoundError: False, Exception: HOUR}},
        never("FileNotFoundError"),
    ),
    case(
        "the nearest class, in another order",
        ConnectionResetError(),
        {"retry": {Exception: False, ConnectionError: "immediate", OSError: False}},
        retried(0, reason="the wait for ConnectionError"),
    ),
    case(
        "the first base of two",
        TwoBases(),
        {"retry": {OSError: False, ValueError: "immediate"}},
        retried(0, reason="the wait for ValueError"),
    ),
    case(
        "not retried, in the last attempt",
        KeyError("x"),
        {"retry": {KeyError: False}, "attempt": 5},
        never("KeyError"),
    ),
    case(
        "retried, attempts used up",
        OSError(),
        {"retry": {OSError: RetryRule(backoff=5)}, "attempt": 5},
        failed("no attempt is left"),
    ),
    case(
        "attempts of the rule left",
        OSError(),
        {"retry": {OSError: RetryRule(max_attempts=3)}},
        retried(),
    ),
    case(
        "attempts of the rule used up",
        OSError(),
        {"retry": {OSError: RetryRule(max_attempts=2)}},
        failed("no attempt is left for OSError"),
    ),
    case(
        "attempts of the rule used up, and none for the job",
        OSError(),
        {"retry": {OSError: RetryRule(max_attempts=2)}, "max_attempts": None},
        failed("no attempt is left for OSError"),
    ),
    case(
        "more attempts by the rule than by the job",
        OSError(),
        {"retry": {OSError: RetryRule(max_attempts=9)}, "attempt": 5},
        failed("no attempt is left"),
    ),
    case(
        "attempts of the rule used up by another exception",
        ValueError(),
        {"retry": {OSError: RetryRule(max_attempts=1)}},
        retried(),
    ),
    case(
        "Retry, attempts of a rule used up",
        Retry(after=1),
        {"retry": {Exception: RetryRule(max_attempts=1)}},
        put_off(1),
    ),
    # Which wait.
    case("a wait of the job", ValueError(), {"own": 60}, retried(60, reason=OWN)),
    case(
        "a wait of the rule, and of the job",
        OSError(),
        {"retry": {OSError: HOUR}, "own": 60},
        retried(3_600, reason="the wait for OSError"),
    ),
    case("Retry, a wait of the job", Retry(), {"own": 60}, put_off(60, OWN)),
    case("Retry after, a wait of the job", Retry(after=5), {"own": 60}, put_off(5)),
    case(
        "a function of the error",
        ValueError("12"),
        {"backoff": seconds_in_error},
        retried(12),
    ),
    case(
        "a function of the job",
        ValueError("x"),
        {"backoff": lambda attempt, exception, job: job.crashes + 7},
        retried(8),
    ),
    case(
        "a function that leaves it to the job",
        ValueError("x"),
        {"retry": {ValueError: nothing}, "own": 60},
        retried(60, reason=OWN),
    ),
    case(
        "a function that leaves it to the type",
        ValueError("x"),
        {"retry": {ValueError: nothing}},
        retried(),
    ),
    case(
        "a rule that wants no further attempt",
        ValueError("x"),
        {"retry": {ValueError: no_more}, "own": 60},
        failed("the backoff policy said so"),
    ),
    case("at most once", ValueError(), ONCE, failed(AT_MOST_ONCE)),
    case("at most once, sys.exit()", SystemExit(1), ONCE, failed(AT_MOST_ONCE)),
    case(
        "at most once, not retried",
        KeyError("x"),
        {**ONCE, "retry": {KeyError: False}},
        failed(AT_MOST_ONCE),
    ),
    case(
        "at most once, attempts left by a mistake",
        ValueError(),
        {**ONCE, "attempt": 1, "max_attempts": None},
        failed(AT_MOST_ONCE),
    ),
    case("wrong data", InvalidArguments("no 'x'"), {}, failed(SIGNATURE)),
    case("wrong result", InvalidResult("a set"), {}, failed(NOT_JSON)),
    case("wrong result, once", InvalidResult("a set"), ONCE, failed(NOT_JSON)),
    case(
        "wrong result, to be retried",
        InvalidResult("a set"),
        {"retry": {TypeError: True}, "max_attempts": None},
        failed(NOT_JSON),
    ),
    case(
        "wrong data, and its class is retried",
        InvalidArguments("no 'x'"),
        {"retry": {ValueError: True}},
        failed(SIGNATURE),
    ),
    case("wrong data, at most once", InvalidArguments("x"), ONCE, failed(AT_MOST_ONCE)),
    # What a running handler was told.
    case("cancelled, a thread", Cancel("asked to"), CANCELLED, cancelled("asked to")),
    case("cancelled, a coroutine", asyncio.CancelledError(), CANCELLED, cancelled("")),
    case(
        "cancelled, at most once",
        asyncio.CancelledError(),
        {**ONCE, **CANCELLED},
        cancelled(""),
    ),
    case(
        "cancelled in the last attempt",
        asyncio.CancelledError(),
        {**CANCELLED, "attempt": 5},
        cancelled(""),
    ),
    case("cancelled, but failed instead", ValueError(), CANCELLED, retried()),
    case("stopped, a coroutine", asyncio.CancelledError(), STOPPED, released()),
    case(
        "stopped, a thread",
        Cancel("the worker stops"),
        STOPPED,
        released(),
    ),
    case(
        "stopped in the last attempt",
        asyncio.CancelledError(),
        {**STOPPED, "attempt": 5},
        released(),
    ),
    case(
        "stopped, CancelledError is not retried",
        asyncio.CancelledError(),
        {**STOPPED, **NOTHING},
        released(),
    ),
    case(
        "stopped, at most once, a coroutine",
        asyncio.CancelledError(),
        {**STOPPED, **ONCE},
        failed(AT_MOST_ONCE),
    ),
    case(
        "stopped, at most once, a thread",
        Cancel("the worker stops"),
        {**STOPPED, **ONCE},
        failed(AT_MOST_ONCE),
    ),
    case("stopped, but failed instead", ValueError(), STOPPED, retried()),
    case("stopped, but snoozed instead", Snooze(HOUR), STOPPED, snoozed(HOUR)),
    case("stopped, but asked for a retry", Retry(after=60), STOPPED, put_off(60)),
    # Timeouts.
    case(
        "JobTimeout", JobTimeout("slow"), TIMED_OUT, retried(end=AttemptEnd.TIMED_OUT)
    ),
    case(
        "JobTimeout that the handler raised itself",
        JobTimeout("slow"),
        {},
        retried(end=AttemptEnd.TIMED_OUT),
    ),
    case(
        "timed out, a coroutine",
        asyncio.CancelledError(),
        TIMED_OUT,
        retried(end=AttemptEnd.TIMED_OUT),
    ),
    case(
        "timed out, the handler cancels its job",
        Cancel("too slow"),
        TIMED_OUT,
        cancelled("too slow"),
    ),
    case(
        "timed out in the last attempt",
        JobTimeout("slow"),
        {**TIMED_OUT, "attempt": 5},
        failed("no attempt is left", AttemptEnd.TIMED_OUT),
    ),
    case(
        "timed out, at most once",
        JobTimeout("slow"),
        {**TIMED_OUT, **ONCE},
        failed(AT_MOST_ONCE, AttemptEnd.TIMED_OUT),
    ),
    case(
        "timed out, timeouts are not retried",
        JobTimeout("slow"),
        {**TIMED_OUT, "retry": {TimeoutError: False}},
        failed("TimeoutError is not retried", AttemptEnd.TIMED_OUT),
    ),
    case(
        "timed out, and timeouts have a wait",
        JobTimeout("slow"),
        {**TIMED_OUT, "retry": {OSError: False, JobTimeout: HOUR}},
        replace(
            retried(3_600, reason="the wait for django_jobqueue.exceptions.JobTimeout"),
            end=AttemptEnd.TIMED_OUT,
        ),
    ),
    case("timed out, but failed instead", ValueError(), TIMED_OUT, retried()),
    case(
        "stopped, then timed out",
        JobTimeout("x"),
        STOPPED,
        retried(2, AttemptEnd.TIMED_OUT),
    ),
]
