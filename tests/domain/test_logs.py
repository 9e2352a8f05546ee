"""Log lines of attempts: one record each, which no message can break or forge."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    logger, keep = logging.getLogger("django_jobqueue.attempt"), Keep()
    caplog.set_level(logging.DEBUG, logger.name)
    logger.addHandler(keep)
    yield keep.records
    logger.removeHandler(keep)


def told(
    error: BaseException, verb: Verb, *, job_type: str = PLAIN, **outcome: Any
) -> Any:
    """Send what the worker sends after an attempt that did not succeed."""
    made = context(job_type=job_type)
    if verb in (Verb.FAIL, Verb.RETRY):
        outcome["failure"] = Failure.of(error, job_type=job_type)
    log_failure(
        context=made,
        seconds=0.25,
        error=error,
        outcome=Outcome(verb=verb, **outcome),
    )
    return made


def test_a_retry_is_one_warning_with_the_wait(
    records: list[logging.LogRecord],
) -> None:
    made = told(raised(ValueError("no stock")), Verb.RETRY, wait=timedelta(seconds=90))
    (record,) = records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"Job {made.id} ({PLAIN}) attempt 2/5 failed, again in 90.0 s: "
        "ValueError: no stock"
    )
    assert record.exc_info is None


def test_a_retry_that_the_handler_asked_for_is_one_line_of_information(
    records: list[logging.LogRecord],
) -> None:
    error = raised(Retry("the report is not ready"))
    made = told(error, Verb.RETRY, wait=timedelta(seconds=90), handler_requested=True)
    (record,) = records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        f"Job {made.id} ({PLAIN}) attempt 2/5 asks to be retried in 90.0 s: "
        "django_jobqueue.exceptions.Retry: the report is not ready"
    )


def test_the_last_failure_is_one_error_with_the_rule_and_the_traceback(
    records: list[logging.LogRecord],
) -> None:
    error = raised(ValueError("no stock"))
    made = told(error, Verb.FAIL, reason="no attempt is left")
    (record,) = records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == (
        f"Job {made.id} ({PLAIN}) attempt 2/5 failed for good (no attempt is left) "
        "after 0.250 s: ValueError: no stock"
    )
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_an_exception_of_a_sensitive_job_type_is_not_logged_itself(
    records: list[logging.LogRecord],
) -> None:
    told(raised(ValueError("no")), Verb.FAIL, job_type=SENSITIVE, reason="no")
    (record,) = records
    assert record.exc_info is None


@pytest.mark.parametrize(
    ("error", "outcome", "text"),
    [
        (
            Snooze(60, "later"),
            {
                "verb": Verb.SNOOZE,
                "end": AttemptEnd.SNOOZED,
                "reason": "later",
                "wait": timedelta(seconds=60),
            },
            "is snoozed for 60.0 s: later",
        ),
        (
            Cancel("not wanted"),
            {"verb": Verb.CANCEL, "end": AttemptEnd.CANCELLED, "reason": "not wanted"},
            "is cancelled: not wanted",
        ),
        (
            Cancel(),
            {"verb": Verb.RELEASE, "end": AttemptEnd.RELEASED, "reason": "stopped"},
            "is released: stopped",
        ),
    ],
)
def test_what_is_no_failure_is_one_line_of_information(
    records: list[logging.LogRecord],
    error: Exception,
    outcome: dict[str, Any],
    text: str,
) -> None:
    made = told(error, **outcome)
    (record,) = records
    assert record.levelno == logging.INFO
    assert record.getMessage() == f"Job {made.id} ({PLAIN}) attempt 2/5 {text}"


def test_a_cancel_on_request_says_where_its_reason_is(
    records: list[logging.LogRecord],
) -> None:
    made = context()
    made._cancelled = True
    cancelled = Outcome(verb=Verb.CANCEL, end=AttemptEnd.CANCELLED, reason="cancelled")
    log_failure(made, cancelled, Cancel(), 0.25)
    assert records[0].getMessage() == (
        f"Job {made.id} ({made.job_type}) attempt 2/5 is cancelled on request; the "
        "archived job has the reason"
    )


def test_an_attempt_that_lost_its_lease_is_one_line_of_information(
    records: list[logging.LogRecord],
) -> None:
    made = told(ClaimLost(context().id), Verb.RELEASE)
    (record,) = records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        f"Job {made.id} ({PLAIN}) attempt 2/5 was rescued while it ran; it is rolled "
        "back"
    )


def test_attempts_without_end_are_shown_as_such(
    records: list[logging.LogRecord],
) -> None:
    log_failure(
        context=context(max_attempts=None),
        seconds=0.0,
        error=Snooze(1),
        outcome=Outcome(verb=Verb.SNOOZE),
    )
    assert "attempt 2/∞ " in records[0].getMessage()


def test_a_record_says_which_job_it_is_about(
    records: list[logging.LogRecord],
) -> None:
    made = told(raised(ValueError("no")), Verb.RETRY)
    (record,) = records
    assert vars(record)["job_id"] == str(made.id)
    assert vars(record)["job_type"] == PLAIN
    assert vars(record)["attempt"] == 2


def test_a_log_line_has_no_data_of_the_job(records: list[logging.LogRecord]) -> None:
    log_failure(
        context=context(data={"note": "canary"}),
        seconds=0.0,
        error=Snooze(1),
        outcome=Outcome(verb=Verb.SNOOZE, reason="later"),
    )
    assert "canary" not in str(vars(records[0]))


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.FAIL])
def test_a_message_can_neither_end_a_line_nor_talk_to_a_terminal(
    records: list[logging.LogRecord], verb: Verb
) -> None:
    told(raised(ValueError(NASTY)), verb)
    (record,) = records
    assert record.getMessage().isprintable()
    assert r"first\nERROR forged line\r\x1b[31m red" in record.getMessage()


@pytest.mark.parametrize("verb", [Verb.SNOOZE, Verb.CANCEL])
def test_a_reason_can_neither_end_a_line_nor_talk_to_a_terminal(
    records: list[logging.LogRecord], verb: Verb
) -> None:
    told(Cancel(NASTY), verb, reason=NASTY)
    (record,) = records
    assert record.getMessage().endswith(ESCAPED)


def test_the_traceback_cannot_talk_to_a_terminal_and_shows_no_credential(
    records: list[logging.LogRecord],
) -> None:
    told(raised(ValueError("\x1b[31m postgres://shop:hunter2@db")), Verb.FAIL)
    text = logging.Formatter().format(records[0])
    assert "\x1b" not in text
    assert "hunter2" not in text
    assert text.splitlines()[1] == "Traceback (most recent call last):"
    assert text.splitlines()[-1] == f"ValueError: \\x1b[31m postgres://{MASK}@db"
    assert "masked_traceback" not in vars(records[0])


def test_of_a_sensitive_job_type_the_masked_traceback_is_shown(
    records: list[logging.LogRecord],
) -> None:
    told(raised(ValueError("no stock")), Verb.FAIL, job_type=SENSITIVE, reason="no")
    text = logging.Formatter().format(records[0])
    assert text.endswith("\nValueError: no stock")


def test_one_line_shows_what_cannot_be_printed_as_escapes() -> None:
    assert one_line(NASTY) == ESCAPED
    assert one_line("plain text, ü, 🎉") == "plain text, ü, 🎉"
    assert one_line("") == ""
