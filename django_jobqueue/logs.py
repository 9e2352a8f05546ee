"""Writes the log lines of attempts; ``LOGGING`` may name ``JobFilter``,
``JobLogHandler``, ``TextFormatter`` and ``JsonFormatter``."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.context import Context, current_job
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.report import LEVELS
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import ClaimLost
from django_jobqueue.store.rows import ClaimedJob

logger = logging.getLogger("django_jobqueue.attempt")

FIELDS: Final = ("job_id", "job_type", "attempt")

EVENTS: Final = {
    Verb.SUCCEED: Event.ATTEMPT_SUCCEEDED,
    Verb.FAIL: Event.ATTEMPT_FAILED,
    Verb.RETRY: Event.ATTEMPT_RETRIED,
    Verb.SNOOZE: Event.ATTEMPT_SNOOZED,
    Verb.CANCEL: Event.ATTEMPT_CANCELLED,
    Verb.RELEASE: Event.ATTEMPT_RELEASED,
    Verb.EXPIRE: Event.ATTEMPT_EXPIRED,
    Verb.HAND_OVER: Event.ATTEMPT_HANDED_OVER,
}

# What every record has; the rest was given to it.
_OWN: Final = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}

shows_successes = False  # whether successful attempts are logged; see below


def connect() -> None:
    """Prepare the logger of attempts."""
    logger.addFilter(_show_masked_traceback)


def connect_successes() -> None:
    """Log successes, too, if ``LOG_SUCCESSES`` says so or the level is DEBUG at this
    moment: a line costs each attempt some microseconds, also if it is then thrown
    away."""
    global shows_successes
    shows_successes = conf.log_successes or logger.isEnabledFor(logging.DEBUG)


def one_line(text: str) -> str:
    """The text with its control characters shown as escapes, so that a message can
    neither end a log record nor talk to a terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


class TextFormatter(logging.Formatter):
    """A line for a record, which begins with a time and its offset from UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(process)d %(levelname)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """The time of the record, to the millisecond, in the zone of this process."""
        moment = datetime.fromtimestamp(record.created).astimezone()
        return moment.isoformat(timespec="milliseconds")


class JsonFormatter(TextFormatter):
    """A JSON object on one line for a record, with all that was given to it as
    ``extra``. Of a traceback it has the text without secrets, if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """``time``, ``level``, ``logger``, ``process``, ``message``, the fields of the
        record, and ``exception``."""
        entry = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _OWN},
        }
        traceback = record.exc_text
        if not traceback and record.exc_info:
            traceback = self.formatException(record.exc_info)
        if traceback:
            entry["exception"] = traceback
        return json.dumps(entry, default=str)


class JobFilter(logging.Filter):
    """Gives records the attributes ``job_id``, ``job_type`` and ``attempt`` of the job
    that runs here; empty ones elsewhere. Existing attributes of a record stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes."""
        context = current_job(default=None)
        extra = dict.fromkeys(FIELDS, "") if context is None else _extra(context)
        vars(record).update({**extra, **vars(record)})
        return True


class JobLogHandler(logging.Handler):
    """Stores a handler's log records as lines of its attempt, like ``Context.log``.
    Name it in ``LOGGING``; it ignores records outside handlers."""

    def emit(self, record: logging.LogRecord) -> None:
        """Add the record to the attempt that runs here, if one does."""
        context = current_job(default=None)
        if context is None:
            return
        try:
            context.log(self.format(record), _level_of(record))
        except Exception:
            self.handleError(record)


def _level_of(record: logging.LogRecord) -> str:
    """The greatest of a report's levels that this record reaches."""
    reached = [
        level
        for level in LEVELS
        if logging.getLevelNamesMapping()[level.upper()] <= record.levelno
    ]
    return reached[-1] if reached else LEVELS[0]


def _show_masked_traceback(record: logging.LogRecord) -> bool:
    """Let formatters print the traceback that is kept, which has no secrets, and leave
    ``exc_info`` to what collects exceptions themselves."""
    record.exc_text = vars(record).pop("masked_traceback", None)
    return True


def log_failure(
    context: Context,
    outcome: Outcome,
    error: BaseException,
    seconds: float,
    waited: float | None = None,
) -> None:
    """Log an attempt that ended with this error after this many seconds; ``waited``:
    seconds from when the job was due to its start."""
    what = _which(context)
    extra = _fields(context, EVENTS[outcome.verb], outcome, seconds, waited)
    if isinstance(error, ClaimLost):
        extra |= {"event": Event.LEASE_LOST}
        logger.info("%s was rescued while it ran; it is rolled back", what, extra=extra)
        return
    failure = outcome.failure
    if failure is None:
        logger.info(
            "%s %s", what, _ended_without_failure(context, outcome), extra=extra
        )
        return
    cause = one_line(f"{failure.error_class}: {failure.message}")
    if outcome.verb is Verb.RETRY:
        level = logging.INFO if outcome.handler_requested else logging.WARNING
        ending = _put_off(outcome)
        logger.log(level, "%s %s: %s", what, ending, cause, extra=extra)
        return
    declaration = registry.get(context.job_type)
    secretive = declaration is not None and declaration.policy.sensitive
    logger.error(
        "%s failed for good (%s) after %.3f s: %s",
        what,
        outcome.reason,
        seconds,
        cause,
        extra={
            **extra,
            "masked_traceback": _printable(failure.traceback),
        },
        exc_info=None if secretive else error,
    )


def log_success(context: Context, seconds: float, waited: float | None = None) -> None:
    """Log an attempt that succeeded after this many seconds."""
    extra = _fields(context, Event.ATTEMPT_SUCCEEDED, None, seconds, waited)
    level = logging.INFO if conf.log_successes else logging.DEBUG
    what = _which(context)
    logger.log(level, "%s succeeded after %.3f s", what, seconds, extra=extra)


def log_unstarted(job: ClaimedJob, reason: str) -> None:
    """Log that a job is archived as failed without another attempt."""
    extra = {
        "event": Event.ATTEMPT_FAILED,
        "outcome": "failed",
        "job_id": str(job.id),
        "job_type": job.job_type,
        "attempt": job.attempts,
    }
    what = f"Job {job.id} ({job.job_type})"
    logger.error("%s failed for good (%s)", what, reason, extra=extra)


def _which(context: Context) -> str:
    attempts = f"{context.attempt}/{context.max_attempts or '∞'}"
    return f"Job {context.id} ({context.job_type}) attempt {attempts}"


def _fields(
    context: Context,
    event: Event,
    outcome: Outcome | None,
    seconds: float,
    waited: float | None,
) -> dict[str, Any]:
    """The fields of a record about the end of an attempt; never its data."""
    failure = outcome and outcome.failure
    fields = {
        "event": event,
        "outcome": event.partition(".")[2],
        **_extra(context),
        "queue": context.queue,
        "max_attempts": context.max_attempts,
        "seconds": round(seconds, 6),
        "worker": context.worker,
        "release": conf.release,
    }
    if waited is not None:
        fields["wait_seconds"] = round(waited, 6)
    if failure:
        fields["error_class"] = failure.error_class
        fields["failure_group"] = str(failure.fingerprint)
    return fields


def _extra(context: Context) -> dict[str, Any]:
    return {
        "job_id": str(context.id),
        "job_type": context.job_type,
        "attempt": context.attempt,
    }


def _ended_without_failure(context: Context, outcome: Outcome) -> str:
    """The outcome in words, of an attempt that neither succeeded nor failed."""
    if outcome.verb is Verb.CANCEL and context.cancelled:
        return "is cancelled on request; the archived job has the reason"
    ending = {
        Verb.SNOOZE: f"is snoozed for {outcome.wait.total_seconds():.1f} s",
        Verb.CANCEL: "is cancelled",
        Verb.RELEASE: "is released",
    }.get(outcome.verb, outcome.verb.value)
    return f"{ending}: {one_line(outcome.reason)}" if outcome.reason else ending


def _put_off(outcome: Outcome) -> str:
    ending = (
        "asks to be retried in" if outcome.handler_requested else "failed, again in"
    )
    why = f" ({outcome.reason})" if outcome.reason else ""
    return f"{ending} {outcome.wait.total_seconds():.1f} s{why}"


def _printable(traceback: str) -> str:
    return "\n".join(map(one_line, traceback.rstrip("\n").split("\n")))
