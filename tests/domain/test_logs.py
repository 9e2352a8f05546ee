"""Log lines of attempts: one record each, which no message can break or forge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue.domain.failures import Failure
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.exceptions import Cancel, ClaimLost, Retry, Snooze
from django_jobqueue.logs import log_failure, one_line
from django_jobqueue.text.redaction import MASK
from tests.domain.made import context
from tests.domain.raised import raised
from tests.support.tables import differing

PLAIN, SENSITIVE = "tests.sample.add", "tests.sample.leak"
NASTY = "first\nERROR forged line\r\x1b[31m red \x00 \u2028 \u202e \ud800 end"
ESCAPED = r"first\nERROR forged line\r\x1b[31m red \x00 \u2028 \u202e \ud800 end"


class Keep(logging.Handler):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(autouse=True)
def keep(caplog: pytest.LogCaptureFixture) -> Iterator[Keep]:
    """What the logger of attempts is told, before any other handler has seen it."""
    logger, made = logging.getLogger("django_jobqueue.attempt"), Keep()
    caplog.set_level(logging.DEBUG, logger.name)
    logger.addHandler(made)
    yield made
    logger.removeHandler(made)


@pytest.fixture
def told(keep: Keep) -> Callable[..., tuple[str, logging.LogRecord]]:
    """Log what the worker logs after an attempt that did not succeed; returns the
    message without the name of the job, and the record."""

    def tell(
        error: BaseException,
        verb: Verb,
        *,
        of: dict[str, Any] | None = None,
        job_type: str = PLAIN,
        **outcome: Any,
    ) -> tuple[str, logging.LogRecord]:
        made = context(job_type=job_type, **(of or {}))
        if verb in (Verb.FAIL, Verb.RETRY):
            outcome["failure"] = Failure.of(error, job_type=job_type)
        log_failure(
            context=made,
            seconds=0.25,
            error=error,
            outcome=Outcome(verb=verb, **outcome),
        )
        record = keep.records.pop()
        assert not keep.records
        about = f"Job {made.id} ({job_type}) attempt "
        message = record.getMessage()
        assert message.startswith(about)
        assert vars(record)["job_id"] == str(made.id)
        assert (vars(record)["job_type"], vars(record)["attempt"]) == (job_type, 2)
        return message.removeprefix(about), record

    return tell


def test_a_retry_is_one_warning_with_the_wait(told: Any) -> None:
    error = raised(ValueError("no stock"))
    message, record = told(error, Verb.RETRY, wait=timedelta(seconds=90))
    assert message == "2/5 failed, again in 90.0 s: ValueError: no stock"
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


def test_the_last_failure_is_one_error_with_the_rule_and_the_traceback(
    told: Any,
) -> None:
    error = raised(ValueError("no stock"))
    message, record = told(error, Verb.FAIL, reason="no attempt is left")
    assert message == (
        "2/5 failed for good (no attempt is left) after 0.250 s: ValueError: no stock"
    )
    assert record.levelno == logging.ERROR
    assert record.exc_info[1] is error


INFORMATION: list[tuple[BaseException, Verb, dict[str, Any], str]] = [
    (
        raised(Retry("the report is not ready")),
        Verb.RETRY,
        {"wait": timedelta(seconds=90), "handler_requested": True},
        "2/5 asks to be retried in 90.0 s: django_jobqueue.exceptions.Retry: "
        "the report is not ready",
    ),
    (
        Snooze(60, "later"),
        Verb.SNOOZE,
        {"wait": timedelta(seconds=60), "reason": "later", "end": AttemptEnd.SNOOZED},
        "2/5 is snoozed for 60.0 s: later",
    ),
    (
        Cancel("no"),
        Verb.CANCEL,
        {"reason": "no", "end": AttemptEnd.CANCELLED},
        "2/5 is cancelled: no",
    ),
    (
        Cancel("no"),
        Verb.CANCEL,
        {"reason": "no", "of": {"_cancelled": True}},
        "2/5 is cancelled on request; the archived job has the reason",
    ),
    (
        Cancel(),
        Verb.RELEASE,
        {"reason": "stopped", "end": AttemptEnd.RELEASED},
        "2/5 is released: stopped",
    ),
    (
        ClaimLost(context().id),
        Verb.RELEASE,
        {},
        "2/5 was rescued while it ran; it is rolled back",
    ),
]


def test_what_is_no_failure_is_one_line_of_information(told: Any) -> None:
    def message(error: BaseException, verb: Verb, outcome: dict[str, Any]) -> str:
        said, record = told(error, verb, **outcome)
        assert record.levelno == logging.INFO
        return str(said)

    assert differing(INFORMATION, message) == []


def test_attempts_without_end_are_shown_as_such_and_data_is_not_shown(
    told: Any,
) -> None:
    of = {"max_attempts": None, "data": {"note": "canary"}}
    message, record = told(Snooze(1), Verb.SNOOZE, of=of, reason="later")
    assert message.startswith("2/∞ ")
    assert "canary" not in str(vars(record))


def test_a_text_can_neither_end_a_line_nor_talk_to_a_terminal(told: Any) -> None:
    for verb in (Verb.RETRY, Verb.FAIL):
        message, record = told(raised(ValueError(NASTY)), verb)
        assert message.isprintable()
        assert r"first\nERROR forged line\r\x1b[31m red" in message
    for verb in (Verb.SNOOZE, Verb.CANCEL):
        message, record = told(Cancel(NASTY), verb, reason=NASTY)
        assert message.endswith(ESCAPED)


def test_the_traceback_cannot_talk_to_a_terminal_and_shows_no_credential(
    told: Any,
) -> None:
    error = raised(ValueError("\x1b[31m postgres://shop:hunter2@db"))
    _, record = told(error, Verb.FAIL)
    text = logging.Formatter().format(record)
    assert "\x1b" not in text
    assert "hunter2" not in text
    assert text.splitlines()[1] == "Traceback (most recent call last):"
    assert text.splitlines()[-1] == f"ValueError: \\x1b[31m postgres://{MASK}@db"
    assert "masked_traceback" not in vars(record)


def test_of_a_sensitive_job_type_the_masked_traceback_is_shown(told: Any) -> None:
    error = raised(ValueError("no stock"))
    _, record = told(error, Verb.FAIL, job_type=SENSITIVE, reason="no")
    assert record.exc_info is None  # the exception itself has the values
    assert logging.Formatter().format(record).endswith("\nValueError: no stock")


def test_one_line_shows_what_cannot_be_printed_as_escapes() -> None:
    assert one_line(NASTY) == ESCAPED
    assert one_line("plain text, ü, 🎉") == "plain text, ü, 🎉"
    assert one_line("") == ""
