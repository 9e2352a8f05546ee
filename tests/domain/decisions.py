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
    Retry,
    Snooze,
)
from django_jobqueue.domain.arguments import UnknownParameters
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.retry_decision import (
    AT_MOST_ONCE,
    Outcome,
    StopReason,
    Verb,
    decide,
)
from django_jobqueue.domain.states import AttemptEnd, Delivery

HOUR = timedelta(hours=1)
SIGNATURE = "the data does not fit the handler"
NOT_JSON = "the result is not JSON"
PERMANENT = "this exception is permanent"
NOT_LISTED = "this exception is not in retry_for"
ONCE = {"delivery": Delivery.AT_MOST_ONCE}
STOPPED = {"asked": StopReason.STOP}
CANCELLED = {"asked": StopReason.CANCEL}
TIMED_OUT = {"asked": StopReason.TIME_OUT}
NO_STOCK = ValueError("no stock")
NEWER = UnknownParameters("send() has no parameter 'copy'.")


def seconds_of_attempt(attempt: int) -> timedelta:
    """A backoff that shows the number of the attempt."""
    return timedelta(seconds=attempt)


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
    **policy: Any,
) -> Outcome:
    """The decision about the second of five attempts, unless said otherwise."""
    return decide(
        error,
        policy=Policy(**{"backoff": seconds_of_attempt, **policy}),
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


def retried(wait: float = 2, end: AttemptEnd = AttemptEnd.FAILED) -> Outcome:
    return Outcome(verb=Verb.RETRY, wait=timedelta(seconds=wait), end=end)


def put_off(wait: float = 2) -> Outcome:
    """Retried because the handler asked for it."""
    return replace(retried(wait), handler_requested=True)


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
    case("Cancel, permanent", Cancel("x"), {"permanent": (Cancel,)}, cancelled("x")),
    case("Snooze", Snooze(HOUR, "later"), {}, snoozed(HOUR, "later")),
    case("Snooze in seconds", Snooze(90), {}, snoozed(timedelta(seconds=90))),
    case("Snooze into the past", Snooze(-1), {}, snoozed(timedelta(0))),
    case("Snooze in the last attempt", Snooze(HOUR), {"attempt": 5}, snoozed(HOUR)),
    case(
        "Snooze, permanent",
        Snooze(9),
        {"permanent": (Exception,)},
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
        "Fail, listed in retry_for",
        Fail("no"),
        {"retry_for": (Fail,)},
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
    case("Retry, permanent", Retry(), {"permanent": (Exception,)}, put_off()),
    case("Retry, not in retry_for", Retry(), {"retry_for": (OSError,)}, put_off()),
    # What a job type says about exceptions.
    case("permanent", KeyError("x"), {"permanent": (KeyError,)}, failed(PERMANENT)),
    case(
        "a subclass of a permanent one",
        KeyError("x"),
        {"permanent": (ValueError, LookupError)},
        failed(PERMANENT),
    ),
    case("not permanent", ValueError(), {"permanent": (LookupError,)}, retried()),
    case("in retry_for", OSError(), {"retry_for": (OSError,)}, retried()),
    case(
        "a subclass of one in retry_for",
        ConnectionError(),
        {"retry_for": (OSError,)},
        retried(),
    ),
    case(
        "not in retry_for", ValueError(), {"retry_for": (OSError,)}, failed(NOT_LISTED)
    ),
    case(
        "permanent and in retry_for",
        FileNotFoundError(),
        {"retry_for": (OSError,), "permanent": (FileNotFoundError,)},
        failed(PERMANENT),
    ),
    case(
        "permanent, in the last attempt",
        KeyError("x"),
        {"permanent": (KeyError,), "attempt": 5},
        failed(PERMANENT),
    ),
    case(
        "in retry_for, attempts used up",
        OSError(),
        {"retry_for": (OSError,), "attempt": 5},
        failed("no attempt is left"),
    ),
    case("at most once", ValueError(), ONCE, failed(AT_MOST_ONCE)),
    case("at most once, sys.exit()", SystemExit(1), ONCE, failed(AT_MOST_ONCE)),
    case(
        "at most once, permanent",
        KeyError("x"),
        {**ONCE, "permanent": (KeyError,)},
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
        {"retry_for": (TypeError,), "max_attempts": None},
        failed(NOT_JSON),
    ),
    case(
        "wrong data, listed in retry_for",
        InvalidArguments("no 'x'"),
        {"retry_for": (ValueError,)},
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
        "stopped, CancelledError is permanent",
        asyncio.CancelledError(),
        {**STOPPED, "permanent": (BaseException,)},
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
        "timed out, timeouts are permanent",
        JobTimeout("slow"),
        {**TIMED_OUT, "permanent": (TimeoutError,)},
        failed(PERMANENT, AttemptEnd.TIMED_OUT),
    ),
    case(
        "timed out, not in retry_for",
        JobTimeout("slow"),
        {**TIMED_OUT, "retry_for": (ValueError,)},
        failed(NOT_LISTED, AttemptEnd.TIMED_OUT),
    ),
    case("timed out, but failed instead", ValueError(), TIMED_OUT, retried()),
    case(
        "stopped, then timed out",
        JobTimeout("x"),
        STOPPED,
        retried(2, AttemptEnd.TIMED_OUT),
    ),
]
