"""``decide``: every rule of the retry state machine, and which rule comes first."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import (
    Cancel,
    Context,
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
from django_jobqueue.retries import LONGEST, describe
from tests.domain.made import context
from tests.support.tables import differing

HOUR = timedelta(hours=1)
NO_STOCK = ValueError("no stock")
CONTEXT = context(crashes=1)
AWAY = NotDelivered("shipping is away")
NEWER = UnknownParameters("send() has no parameter 'copy'.")


class TwoBases(ValueError, OSError):
    """An exception of two kinds."""


def seconds_of_attempt(attempt: int) -> timedelta:
    """A backoff that shows the number of the attempt."""
    return timedelta(seconds=attempt)


def in_error(attempt: int, exception: BaseException, job: Context) -> float:
    return float(str(exception))


def by_crashes(attempt: int, exception: BaseException, job: Context) -> int:
    return job.crashes + 7


def nothing(attempt: int, exception: BaseException, job: Context) -> None:
    """A backoff that leaves the wait to the next one."""


def no_more(attempt: int) -> timedelta:
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


def caused(error: BaseException) -> BaseException:
    """As ``raise error from NO_STOCK`` makes it."""
    error.__context__ = error.__cause__ = NO_STOCK
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


def by_rule(wait: float, name: str) -> Outcome:
    """Retried after the wait of the rule of this class."""
    return retried(wait, reason=f"the wait for {name}")


def put_off(wait: float = 2, reason: str = "") -> Outcome:
    """Retried because the handler asked for it."""
    return replace(retried(wait, reason=reason), handler_requested=True)


def failed(reason: str) -> Outcome:
    return Outcome(verb=Verb.FAIL, end=AttemptEnd.FAILED, reason=reason)


def never(name: str) -> Outcome:
    return failed(f"{name} is not retried")


def cancelled(reason: str) -> Outcome:
    return Outcome(verb=Verb.CANCEL, end=AttemptEnd.CANCELLED, reason=reason)


def snoozed(wait: timedelta | float, reason: str = "") -> Outcome:
    wait = wait if isinstance(wait, timedelta) else timedelta(seconds=wait)
    return Outcome(verb=Verb.SNOOZE, wait=wait, end=AttemptEnd.SNOOZED, reason=reason)


def left(wait: float) -> Outcome:
    return snoozed(wait, f"left to newer code: {NEWER}")


def away(wait: float) -> Outcome:
    """To when the endpoint can be reached."""
    return snoozed(wait, "shipping is away")


RELEASED = Outcome(verb=Verb.RELEASE, end=AttemptEnd.RELEASED, reason="stopped")
OF_TIME = retried(end=AttemptEnd.TIMED_OUT)
LOST = failed(AT_MOST_ONCE)
USED_UP = failed("no attempt is left")
SAID_SO = failed("the handler said so")
ENOUGH = failed("the backoff policy said so")
MISFIT = failed("the data does not fit the handler")
NOT_JSON = failed("the result is not JSON")

# What is given, besides what was raised.
LAST: dict[str, Any] = {"attempt": 5}
UNLIMITED: dict[str, Any] = {"max_attempts": None}
ONCE: dict[str, Any] = {"delivery": Delivery.AT_MOST_ONCE}
STOPPED: dict[str, Any] = {"asked": StopReason.STOP}
CANCELLED: dict[str, Any] = {"asked": StopReason.CANCEL}
TIMED_OUT: dict[str, Any] = {"asked": StopReason.TIME_OUT}
OWN: dict[str, Any] = {"own": 60}
NOTHING: dict[str, Any] = {"retry": {BaseException: False}}
ONLY_OS_ERRORS: dict[str, Any] = {"retry": {OSError: True, Exception: False}}
NO_KEYS: dict[str, Any] = {"retry": {KeyError: False}}
LEAVES_IT: dict[str, Any] = {"retry": {ValueError: nothing}}
RESETS: dict[str, Any] = {
    "retry": {Exception: False, ConnectionError: "immediate", OSError: False}
}
FILES: dict[str, Any] = {
    "retry": {OSError: HOUR, FileNotFoundError: False, Exception: HOUR}
}
LOOKUPS: dict[str, Any] = {"retry": {(ValueError, LookupError): False}}
BASES: dict[str, Any] = {"retry": {OSError: False, ValueError: "immediate"}}
FIVE: dict[str, Any] = {"retry": {OSError: RetryRule(backoff=5)}}
ENDS: dict[str, Any] = {"retry": {ValueError: no_more}, **OWN}
RESULTS: dict[str, Any] = {"retry": {TypeError: True}, **UNLIMITED}
VALUES: dict[str, Any] = {"retry": {ValueError: True}}
NO_TIMEOUTS: dict[str, Any] = {"retry": {TimeoutError: False}}
TIMEOUTS: dict[str, Any] = {"retry": {OSError: False, JobTimeout: HOUR}}


def ruled(most: int, of: type[Exception] = OSError) -> dict[str, Any]:
    return {"retry": {of: RetryRule(max_attempts=most)}}


def late(outcome: Outcome) -> Outcome:
    """The same of an attempt that timed out."""
    return replace(outcome, end=AttemptEnd.TIMED_OUT)


# Names of classes and functions that occur often, so that a case is a line.
Told, Error, Slow = asyncio.CancelledError, ValueError, JobTimeout
OF_JOB = "the wait of this job"
OF_OS = failed("no attempt is left for OSError")
SLOW_WAIT = by_rule(3_600, "django_jobqueue.exceptions.JobTimeout")

Case = tuple[str, BaseException | None, dict[str, Any], Outcome]
CASES: list[Case] = [
    ("unknown parameter", NEWER, {}, left(1)),
    ("unknown parameter, last attempt", NEWER, LAST, left(1)),
    ("unknown parameter again", NEWER, {"given_back": 4}, left(16)),
    ("unknown parameter, the last time", NEWER, {"given_back": 9}, left(60)),
    ("unknown parameter too often", NEWER, {"given_back": 10}, MISFIT),
    ("the same, at most once", NEWER, {**ONCE, "given_back": 10}, LOST),
    ("unknown parameter, without a claim", NEWER, {"given_back": -1}, MISFIT),
    ("not delivered", AWAY, {}, retried()),
    ("not delivered, the last time", AWAY, LAST, USED_UP),
    ("not delivered, once", AWAY, ONCE, away(1)),
    ("not delivered, once, again", AWAY, {**ONCE, "given_back": 63}, away(60)),
    ("not delivered, once, for an hour", AWAY, {**ONCE, "given_back": 64}, LOST),
    ("nothing raised", None, {}, succeeded()),
    ("nothing raised, last attempt", None, LAST, succeeded()),
    ("nothing raised, cancelled too late", None, CANCELLED, succeeded()),
    ("nothing raised, timed out too late", None, TIMED_OUT, succeeded()),
    # An exception of the handler's.
    ("any exception", Error("no"), {}, retried()),
    ("the last attempt", Error(), LAST, USED_UP),
    ("unlimited", Error(), {"attempt": 9_999, **UNLIMITED}, retried(9_999)),
    ("CancelledError of its own", Told(), {}, retried()),
    # The four words.
    ("Cancel", Cancel("sold out"), {}, cancelled("sold out")),
    ("Cancel without a reason", Cancel(), {}, cancelled("cancelled")),
    ("Snooze", Snooze(HOUR, "later"), {}, snoozed(HOUR, "later")),
    ("Snooze in the last attempt", Snooze(HOUR), LAST, snoozed(HOUR)),
    ("Snooze, at most once", Snooze(HOUR), ONCE, LOST),
    ("Fail", Fail("no such order"), {}, SAID_SO),
    ("a backoff that raises Fail", Error(), {"backoff": no_more}, ENOUGH),
    ("Fail, at most once", Fail("no"), ONCE, SAID_SO),
    ("Retry", Retry("again"), {}, put_off()),
    ("Retry after seconds", Retry(after=60), {}, put_off(60)),
    ("Retry after a timedelta", Retry(after=HOUR), {}, put_off(3_600)),
    ("Retry, attempts used up", Retry(after=60), LAST, USED_UP),
    ("Retry because of an exception", caused(Retry(after=60)), {}, retried(60)),
    ("Retry while another is handled", handling(Retry()), {}, retried()),
    ("Retry, at most once", Retry(after=60), ONCE, LOST),
    ("Retry, where nothing is retried", Retry(), NOTHING, put_off()),
    ("Retry because of one that is not", caused(Retry()), NOTHING, retried()),
    # What a job type says about exceptions.
    ("not retried", KeyError("x"), NO_KEYS, never("KeyError")),
    ("a subclass of one that is not", KeyError("x"), LOOKUPS, never("LookupError")),
    ("the only one that is retried", OSError(), ONLY_OS_ERRORS, retried()),
    ("another one", Error(), ONLY_OS_ERRORS, never("Exception")),
    ("sys.exit() is no Exception", SystemExit(1), ONLY_OS_ERRORS, retried()),
    ("sys.exit(), not retried", SystemExit(1), NOTHING, never("BaseException")),
    ("the nearest class", FileNotFoundError(), FILES, never("FileNotFoundError")),
    ("in any order", ConnectionResetError(), RESETS, by_rule(0, "ConnectionError")),
    ("the first base of two", TwoBases(), BASES, by_rule(0, "ValueError")),
    ("not retried, last", KeyError("x"), {**NO_KEYS, **LAST}, never("KeyError")),
    ("retried, attempts used up", OSError(), {**FIVE, **LAST}, USED_UP),
    ("attempts of the rule left", OSError(), ruled(3), retried()),
    ("attempts of the rule used up", OSError(), ruled(2), OF_OS),
    ("more by the rule than by the job", OSError(), {**ruled(9), **LAST}, USED_UP),
    ("attempts of another rule used up", Error(), ruled(1), retried()),
    ("Retry, rule used up", Retry(after=1), ruled(1, Exception), put_off(1)),
    # Which wait.
    ("a wait of the job", Error(), OWN, retried(60, reason=OF_JOB)),
    (
        "a wait of the rule, and of the job",
        OSError(),
        {**FIVE, **OWN},
        by_rule(5, "OSError"),
    ),
    ("Retry, a wait of the job", Retry(), OWN, put_off(60, OF_JOB)),
    ("Retry after, a wait of the job", Retry(after=5), OWN, put_off(5)),
    ("a function of the error", Error("12"), {"backoff": in_error}, retried(12)),
    ("a function of the job", Error(), {"backoff": by_crashes}, retried(8)),
    (
        "a function leaves it to the job",
        Error(),
        {**LEAVES_IT, **OWN},
        retried(60, reason=OF_JOB),
    ),
    ("a function that leaves it to the type", Error("x"), LEAVES_IT, retried()),
    ("a rule that wants no further attempt", Error("x"), ENDS, ENOUGH),
    ("at most once", Error(), ONCE, LOST),
    ("at most once, not retried", KeyError("x"), {**ONCE, **NO_KEYS}, LOST),
    ("at most once, attempts left", Error(), {**ONCE, "attempt": 1, **UNLIMITED}, LOST),
    ("wrong data", InvalidArguments("no 'x'"), {}, MISFIT),
    ("wrong result", InvalidResult("a set"), {}, NOT_JSON),
    ("wrong result, to be retried", InvalidResult("a set"), RESULTS, NOT_JSON),
    ("wrong data, and its class is retried", InvalidArguments("x"), VALUES, MISFIT),
    ("wrong data, at most once", InvalidArguments("x"), ONCE, LOST),
    # What a running handler was told.
    ("cancelled, a thread", Cancel("asked to"), CANCELLED, cancelled("asked to")),
    ("cancelled, a coroutine", Told(), CANCELLED, cancelled("")),
    ("cancelled, at most once", Told(), {**ONCE, **CANCELLED}, cancelled("")),
    ("stopped, a coroutine", Told(), STOPPED, RELEASED),
    ("stopped, a thread", Cancel("the worker stops"), STOPPED, RELEASED),
    ("stopped, at most once, a coroutine", Told(), {**STOPPED, **ONCE}, LOST),
    ("stopped, but failed instead", Error(), STOPPED, retried()),
    ("stopped, but snoozed instead", Snooze(HOUR), STOPPED, snoozed(HOUR)),
    ("stopped, but asked for a retry", Retry(after=60), STOPPED, put_off(60)),
    # Timeouts.
    ("JobTimeout", Slow("slow"), TIMED_OUT, OF_TIME),
    ("JobTimeout that the handler raised itself", Slow("slow"), {}, OF_TIME),
    ("timed out, a coroutine", Told(), TIMED_OUT, OF_TIME),
    ("timed out, cancels its job", Cancel("slow"), TIMED_OUT, cancelled("slow")),
    ("timed out in the last attempt", Slow(), {**TIMED_OUT, **LAST}, late(USED_UP)),
    ("timed out, at most once", Slow(), {**TIMED_OUT, **ONCE}, late(LOST)),
    ("not retried", Slow(), {**TIMED_OUT, **NO_TIMEOUTS}, late(never("TimeoutError"))),
    ("with a wait", Slow(), {**TIMED_OUT, **TIMEOUTS}, late(SLOW_WAIT)),
    ("stopped, then timed out", Slow("x"), STOPPED, OF_TIME),
]


DEFAULT = "the default wait"


def test_the_decision_table() -> None:
    assert differing(CASES, lambda name, error, given: decided(error, **given)) == []


def raises_value_error(attempt: int) -> timedelta:
    raise ValueError("a bad policy")


WRONG: dict[str, Any] = {
    "raises": raises_value_error,
    "a string": lambda attempt: "soon",
    "not a number": lambda attempt: float("nan"),
    "no such value": lambda a, exception, job: exception.response,
    "a bool": lambda a, exception, job: not job,
}


def test_a_backoff_that_is_wrong_is_logged_and_the_next_one_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for what, backoff in WRONG.items():
        caplog.clear()
        rules = {"retry": {ValueError: backoff}, "backoff": backoff}
        outcome = decided(ValueError(), attempt=1, **rules)
        assert (outcome.verb, outcome.reason) == (Verb.RETRY, DEFAULT), what
        assert timedelta(0) <= outcome.wait <= timedelta(seconds=10), what
        name = describe(backoff)
        assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
            (logging.ERROR, f"The backoff {name} failed; the next one is used")
        ] * 2
        assert all(record.exc_info for record in caplog.records)


def test_a_backoff_that_returns_none_leaves_the_wait_to_the_default_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def later(attempt: int) -> float:
        return 5

    outcome = decided(ValueError(), attempt=1, backoff=lambda attempt: None)
    assert outcome.reason == DEFAULT
    assert timedelta(0) <= outcome.wait <= timedelta(seconds=10)
    assert not caplog.records
    # An async result is no wait, and nothing is left to await.
    outcome = decided(ValueError(), backoff=lambda attempt: later(attempt))
    assert outcome.reason == DEFAULT


def test_no_function_is_called_where_no_code_of_the_project_may_run() -> None:
    def hang(attempt: int) -> timedelta:
        raise AssertionError("it is called")

    for own, reason in ((None, DEFAULT), (60, "the wait of this job")):
        outcome = decide(
            OSError(),
            policy=policy_of("tests", {"backoff": hang, "retry": {OSError: hang}}),
            attempt=1,
            max_attempts=5,
            backoff=to_backoff(own),
        )
        assert (outcome.verb, outcome.reason) == (Verb.RETRY, reason)


def test_a_function_gets_the_attempt_the_exception_and_the_job() -> None:
    asked: list[Any] = []
    error = ValueError("no stock")

    def remember(attempt: int, exception: BaseException, job: Context) -> float:
        asked.extend((attempt, exception, job))
        return 1.5

    assert decided(error, attempt=3, backoff=remember).wait.total_seconds() == 1.5
    assert asked == [3, error, CONTEXT]


def test_a_backoff_out_of_bounds_or_that_exits_is_forced_into_them() -> None:
    def leave(attempt: int) -> timedelta:
        raise SystemExit(1)

    waits = [(timedelta(-3), timedelta(0)), (timedelta.max, LONGEST), (HOUR, HOUR)]
    for returned, wait in waits:
        outcome = decided(ValueError(), backoff=lambda attempt, wait=returned: wait)
        assert outcome.wait == wait
    for word in (Snooze(timedelta.max), Retry(after=timedelta.max)):
        assert decided(word).wait <= LONGEST
    assert decided(ValueError(), backoff=leave).verb is Verb.RETRY


class Unprintable(Cancel):
    """A Cancel whose text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")


def test_the_reason_of_a_word_is_text_that_a_database_can_store() -> None:
    assert decided(Unprintable()).verb is Verb.CANCEL
    for word in (
        *(Cancel("a\x00b"), Cancel("\ud800"), Cancel("x" * 1_000_000)),
        *(Snooze(1, "a\x00b"), Snooze(1, "x" * 1_000_000)),
        Snooze(1, ValueError("busy")),  # type: ignore[arg-type]
    ):
        reason = decided(word).reason
        assert isinstance(reason, str)
        assert "\x00" not in reason
        assert len(reason.encode()) <= 2_000
