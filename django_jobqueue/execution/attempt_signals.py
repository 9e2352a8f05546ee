"""Tells the log, the receivers of signals and the observer of a job type that an
attempt has ended."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from django_jobqueue import logs, signals

if TYPE_CHECKING:
    from django_jobqueue.execution.attempt import Attempt
    from django_jobqueue.store.queue.finish import Finished

logger = logging.getLogger(__name__)


def tell(attempt: Attempt, finished: Finished) -> None:
    """Tell of this end; however long the receivers take."""
    if attempt.error is not None or logs.shows_successes:
        _log(attempt, finished)
    signal = _signal_of(attempt)
    if signal.receivers:
        signals.send(signal, attempt.sender, **_news_of(attempt, finished))
    if observer := attempt.declaration.observer:
        observer.on_finished(attempt.here(), finished.outcome, attempt.error)


def atell(attempt: Attempt, finished: Finished) -> Coroutine[Any, Any, None] | None:
    """``tell`` for an async handler: returns what to await in its event loop; None if
    nobody listens, as to most attempts."""
    if attempt.error is not None or logs.shows_successes:
        _log(attempt, finished)
    if _signal_of(attempt).receivers or attempt.declaration.observer:
        return _atell(attempt, finished)
    return None


async def _atell(attempt: Attempt, finished: Finished) -> None:
    signal = _signal_of(attempt)
    if signal.receivers:
        await signals.asend(signal, attempt.sender, **_news_of(attempt, finished))
    if observer := attempt.declaration.observer:
        await observer.aon_finished(attempt.here(), finished.outcome, attempt.error)


def _log(attempt: Attempt, finished: Finished) -> None:
    """Our own lines are written directly, and not by a receiver: sync receivers of an
    async attempt wait for a thread that a handler may block."""
    try:
        if attempt.error is not None:
            outcome, error = finished.outcome, attempt.error
            logs.log_failure(attempt.here(), outcome, error, finished.ran)
        else:
            logs.log_success(attempt.here(), finished.ran)
    except Exception:
        logger.exception("The end of job %s could not be logged", attempt.job.id)


def _signal_of(attempt: Attempt) -> Signal:
    if attempt.error is None:
        return signals.attempt_succeeded
    return signals.attempt_failed


def _news_of(attempt: Attempt, finished: Finished) -> dict[str, Any]:
    """The arguments of the signal about its end."""
    news: dict[str, Any] = {
        "job_type": attempt.job.job_type,
        "context": attempt.here(),
        "seconds": finished.ran,
    }
    if attempt.error is not None:
        news |= {"outcome": finished.outcome, "error": attempt.error}
    return news
