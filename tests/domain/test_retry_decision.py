"""``decide``: every rule of the retry state machine, and which rule comes first."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import Cancel, Context, Retry, Snooze
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.option_checks import to_backoff
from django_jobqueue.domain.retry_decision import Outcome, Verb, decide
from django_jobqueue.retries import LONGEST, describe
from tests.domain.decisions import CASES, CONTEXT, HOUR, decided


@pytest.mark.parametrize(("error", "given", "outcome"), CASES)
def test_the_decision_table(
    error: BaseException | None, given: dict[str, Any], outcome: Outcome
) -> None:
    assert decided(error, **given) == outcome


def raises_value_error(attempt: int) -> timedelta:
    raise ValueError("a bad policy")


@pytest.mark.parametrize(
    "backoff",
    [
        pytest.param(raises_value_error, id="raises"),
        pytest.param(lambda attempt: "soon", id="a string"),
        pytest.param(lambda attempt: float("nan"), id="not a number"),
        pytest.param(lambda a, exception, job: exception.response, id="no such value"),
        pytest.param(lambda a, exception, job: not job, id="a bool"),
    ],
)
def test_a_backoff_that_is_wrong_is_logged_and_the_next_one_used(
    backoff: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    rules = {"retry": {ValueError: backoff}, "backoff": backoff}
    outcome = decided(ValueError(), attempt=1, **rules)
    assert outcome.verb is Verb.RETRY
    assert timedelta(0) <= outcome.wait <= timedelta(seconds=10)
    assert outcome.reason == "the default wait"
    name = describe(backoff)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, f"The backoff {name} failed; the next one is used")
    ] * 2
    assert all(record.exc_info for record in caplog.records)


def test_a_backoff_that_returns_none_leaves_the_wait_to_the_default_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcome = decided(ValueError(), attempt=1, backoff=lambda attempt: None)
    assert outcome.reason == "the default wait"
    assert timedelta(0) <= outcome.wait <= timedelta(seconds=10)
    assert not caplog.records


def test_an_async_result_is_no_wait_and_leaves_nothing_to_await() -> None:
    async def later(attempt: int) -> float:
        return 5

    outcome = decided(ValueError(), backoff=lambda attempt: later(attempt))
    assert outcome.reason == "the default wait"


@pytest.mark.parametrize("own", [None, 60])
def test_no_function_is_called_where_no_code_of_the_project_may_run(
    own: int | None,
) -> None:
    def hang(attempt: int) -> timedelta:
        raise AssertionError("it is called")

    outcome = decide(
        OSError(),
        policy=policy_of("tests", {"backoff": hang, "retry": {OSError: hang}}),
        attempt=1,
        max_attempts=5,
        backoff=to_backoff(own),
    )
    assert outcome.verb is Verb.RETRY
    assert outcome.reason == ("the wait of this job" if own else "the default wait")


def test_a_function_gets_the_attempt_the_exception_and_the_job() -> None:
    asked: list[Any] = []
    error = ValueError("no stock")

    def remember(attempt: int, exception: BaseException, job: Context) -> float:
        asked.extend((attempt, exception, job))
        return 1.5

    assert decided(error, attempt=3, backoff=remember).wait.total_seconds() == 1.5
    assert asked == [3, error, CONTEXT]


@pytest.mark.parametrize(
    ("returned", "wait"),
    [(timedelta(days=-3), timedelta(0)), (timedelta.max, LONGEST), (HOUR, HOUR)],
)
def test_a_backoff_out_of_bounds_is_forced_into_them(
    returned: timedelta, wait: timedelta
) -> None:
    assert decided(ValueError(), backoff=lambda attempt: returned).wait == wait


def test_a_backoff_that_exits_does_not_end_the_worker() -> None:
    def leave(attempt: int) -> timedelta:
        raise SystemExit(1)

    assert decided(ValueError(), backoff=leave).verb is Verb.RETRY


@pytest.mark.parametrize("word", [Snooze(timedelta.max), Retry(after=timedelta.max)])
def test_a_wait_that_a_handler_asks_for_is_one_that_a_database_can_add(
    word: Exception,
) -> None:
    assert decided(word).wait <= LONGEST


class Unprintable(Cancel):
    """A Cancel whose text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")


def test_a_cancel_that_cannot_be_formatted_is_a_cancel_all_the_same() -> None:
    assert decided(Unprintable()).verb is Verb.CANCEL


@pytest.mark.parametrize(
    "word",
    [
        pytest.param(Cancel("a\x00b"), id="Cancel, NUL"),
        pytest.param(Cancel("\ud800"), id="Cancel, surrogate"),
        pytest.param(Cancel("x" * 1_000_000), id="Cancel, a megabyte"),
        pytest.param(Snooze(1, "a\x00b"), id="Snooze, NUL"),
        pytest.param(Snooze(1, "x" * 1_000_000), id="Snooze, a megabyte"),
        pytest.param(Snooze(1, ValueError("busy")), id="Snooze, an exception"),  # type: ignore[arg-type]
    ],
)
def test_the_reason_of_a_word_is_text_that_a_database_can_store(
    word: Exception,
) -> None:
    reason = decided(word).reason
    assert isinstance(reason, str)
    assert "\x00" not in reason
    assert len(reason.encode()) <= 2_000
