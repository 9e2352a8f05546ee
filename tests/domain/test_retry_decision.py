"""``decide``: every rule of the retry state machine, and which rule comes first."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import Cancel, Retry, Snooze
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.retries import LONGEST
from tests.domain.decisions import CASES, HOUR, decided


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
        pytest.param(lambda attempt: 5, id="a number"),
        pytest.param(lambda attempt: None, id="nothing"),
        pytest.param(lambda attempt: "soon", id="a string"),
        pytest.param(lambda: timedelta(0), id="takes no attempt"),
    ],
)
def test_a_backoff_that_is_wrong_is_logged_and_the_default_one_used(
    backoff: Callable[[int], Any], caplog: pytest.LogCaptureFixture
) -> None:
    outcome = decided(ValueError(), attempt=1, backoff=backoff)
    assert outcome.verb is Verb.RETRY
    assert timedelta(0) <= outcome.wait <= timedelta(seconds=10)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.getMessage() == ("The backoff policy failed; the default one is used")


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
