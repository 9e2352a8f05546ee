"""``decide``: every rule of the retry state machine, and which rule comes first."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import Cancel, Context, Retry, Snooze
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.option_checks import to_backoff
from django_jobqueue.domain.retry_decision import Verb, decide
from django_jobqueue.retries import LONGEST, describe
from tests.domain.decisions import CASES, CONTEXT, HOUR, decided
from tests.support.tables import differing

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
