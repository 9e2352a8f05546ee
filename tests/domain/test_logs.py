"""Log lines of attempts: one record each, which no message can break or forge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

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

ID = UUID("019aa2f0-0000-7000-8000-000000000001")
PLAIN, SENSITIVE = "tests.sample.add", "tests.sample.leak"
NASTY = "first\nERROR forged line\r\x1b[31m red \x00 \u2028 \u202e \ud800 end"
ESCAPED = r"first\nERROR forged line\r\x1b[31m red \x00 \u2028 \u202e \ud800 end"


class Keep(logging.Handler):
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


def test_a_retry_is_one_warning_and_the_last_failure_one_error_with_the_traceback(
    told: Any,
) -> None:
    error = raised(ValueError("no stock"))
    message, record = told(error, Verb.RETRY, wait=timedelta(seconds=90))
    assert message == "2/5 failed, again in 90.0 s: ValueError: no stock"
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    message, record = told(error, Verb.FAIL, reason="no attempt is left")
    assert message == (
        "2/5 failed for good (no attempt is left) after 0.250 s: ValueError: no stock"
    )
    assert (record.levelname, record.exc_info[1]) == ("ERROR", error)


MINUTE = timedelta(seconds=60)
SNOOZED = {"wait": MINUTE, "reason": "later", "end": AttemptEnd.SNOOZED}
ASKED = {"wait": MINUTE, "handler_requested": True}
STOPPED = {"reason": "stopped", "end": AttemptEnd.RELEASED}
ON_REQUEST = "2/5 is cancelled on request; the archived job has the reason"
LATER = "2/5 asks to be retried in 60.0 s: django_jobqueue.exceptions.Retry: not ready"
INFORMATION: list[tuple[BaseException, Verb, dict[str, Any], str]] = [
    (raised(Retry("not ready")), Verb.RETRY, ASKED, LATER),
    (Snooze(60, "later"), Verb.SNOOZE, SNOOZED, "2/5 is snoozed for 60.0 s: later"),
    (Cancel("no"), Verb.CANCEL, {"reason": "no"}, "2/5 is cancelled: no"),
    (Cancel(), Verb.CANCEL, {"reason": "no", "of": {"_cancelled": True}}, ON_REQUEST),
    (Cancel(), Verb.RELEASE, STOPPED, "2/5 is released: stopped"),
    (
        ClaimLost(ID),
        Verb.RELEASE,
        {},
        "2/5 was rescued while it ran; it is rolled back",
    ),
]


def test_what_is_no_failure_is_one_line_of_information_without_data(told: Any) -> None:
    def message(error: BaseException, verb: Verb, outcome: dict[str, Any]) -> str:
        said, record = told(error, verb, **outcome)
        assert record.levelno == logging.INFO
        return str(said)

    assert differing(INFORMATION, message) == []
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
    # Nor can a traceback, which shows no credential either.
    _, record = told(
        raised(ValueError("\x1b[31m postgres://shop:hunter2@db")), Verb.FAIL
    )
    text = logging.Formatter().format(record)
    assert "\x1b" not in text
    assert "hunter2" not in text
    assert text.splitlines()[1] == "Traceback (most recent call last):"
    assert text.splitlines()[-1] == f"ValueError: \\x1b[31m postgres://{MASK}@db"
    assert "masked_traceback" not in vars(record)
    assert one_line("plain text, ü, 🎉") == "plain text, ü, 🎉"
    error = raised(ValueError("no stock"))
    _, record = told(error, Verb.FAIL, job_type=SENSITIVE, reason="no")
    assert record.exc_info is None  # the exception itself has the values
    assert logging.Formatter().format(record).endswith("\nValueError: no stock")
