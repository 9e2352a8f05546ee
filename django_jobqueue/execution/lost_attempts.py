"""Logs and announces attempts whose worker is gone."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from django.dispatch import Signal

from django_jobqueue import observers, signals
from django_jobqueue.domain.failures import Failure
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import AT_MOST_ONCE, Outcome, Verb
from django_jobqueue.domain.states import ArchivedStatus, AttemptEnd, QueuedStatus
from django_jobqueue.logs import one_line
from django_jobqueue.observers import LostAttempt, trace_of
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.store.queue.rescue import Rescued

logger = logging.getLogger("django_jobqueue.attempt")

NAMED: Final = 20  # jobs that have a line of their own, of all that are told at once

Send = Callable[..., None]  # signal, sender, and the arguments

_LEVELS: Final = {
    ArchivedStatus.FAILED: logging.ERROR,
    QueuedStatus.QUEUED: logging.WARNING,
    ArchivedStatus.CANCELLED: logging.INFO,
}


def announce_lost(rescued: Sequence[Rescued], reason: str, send: Send) -> None:
    """Log each of these jobs, report it to observers, and send its signals, the last
    two with ``send``; they were taken from a worker that died, or was stopped, for this
    reason."""
    _log(rescued, reason)
    if observers.registered:
        send(_lost, None, lost=[_lost_attempt(job, reason) for job in rescued])
    for job in rescued:
        sender = registry.sender(job.job_type)
        send(
            signals.job_rescued,
            sender,
            job_type=job.job_type,
            id=job.id,
            status=job.status,
            reason=reason,
        )
        if job.status == QueuedStatus.QUEUED:
            continue
        failed = job.status == ArchivedStatus.FAILED
        send(
            signals.job_failed if failed else signals.job_cancelled,
            sender,
            job_type=job.job_type,
            id=job.id,
            attempt=job.attempt,
            seconds=job.ran,
            outcome=_outcome(job, reason),
        )


def report_lost(lost: LostAttempt, send: Send) -> None:
    """Report an attempt to observers, with ``send``."""
    if observers.registered:
        send(_lost, None, lost=[lost])


def _report(lost: Sequence[LostAttempt], **arguments: object) -> None:
    for one in lost:
        observers.report_lost(one)


# Through the thread that sends signals, so that a slow observer delays no rescue.
_lost: Final = Signal()
_lost.connect(_report)


def log_timed_out(finished: Finished, job_type: str, attempt: int) -> None:
    """Log an attempt that ran longer than its timeout, in a process that was killed for
    it."""
    outcome = finished.outcome
    again = outcome.verb is Verb.RETRY
    became = (
        f"failed, again in {outcome.wait.total_seconds():.1f} s"
        if again
        else f"failed for good ({outcome.reason}) after {finished.ran:.3f} s"
    )
    logger.log(
        logging.WARNING if again else logging.ERROR,
        "Job %s (%s) attempt %d %s: %s",
        finished.id,
        job_type,
        attempt,
        became,
        "" if outcome.failure is None else one_line(outcome.failure.message),
        extra=_fields(
            Event.ATTEMPT_RETRIED if again else Event.ATTEMPT_FAILED,
            finished.id,
            job_type,
            attempt,
            finished.ran,
        ),
    )


def _outcome(job: Rescued, reason: str) -> Outcome:
    """The outcome of an attempt whose worker is gone."""
    if job.status == ArchivedStatus.CANCELLED:
        return Outcome(verb=Verb.CANCEL, end=AttemptEnd.CANCELLED, reason=reason)
    is_queued = job.status == QueuedStatus.QUEUED
    if is_queued and not job.crashed:
        return Outcome(verb=Verb.RELEASE, end=AttemptEnd.RELEASED, reason=reason)
    return Outcome(
        verb=Verb.RETRY if is_queued else Verb.FAIL,
        end=AttemptEnd.CRASHED if job.crashed else AttemptEnd.FAILED,
        reason=f"crash {job.crashes}" if is_queued else _why_not_again(job),
        failure=Failure.synthetic(job.error_class, reason, job_type=job.job_type),
    )


def _lost_attempt(job: Rescued, reason: str) -> LostAttempt:
    return LostAttempt(
        id=job.id,
        job_type=job.job_type,
        queue=job.queue,
        attempt=job.attempt,
        crashes=job.crashes,
        seconds=job.ran,
        waited=job.waited,
        worker=job.worker,
        outcome=_outcome(job, reason),
        trace=trace_of(job.metadata),
    )


def _why_not_again(job: Rescued) -> str:
    if job.crashed and job.crashes >= job.max_crashes:
        return f"crash {job.crashes} of {job.max_crashes}"
    return AT_MOST_ONCE


def _log(rescued: Sequence[Rescued], reason: str) -> None:
    """The worst first; a worker may have held thousands."""
    ordered = sorted(rescued, key=_level_of, reverse=True)
    for job in ordered[:NAMED]:
        logger.log(
            _level_of(job),
            "Job %s (%s) attempt %d %s: %s",
            job.id,
            job.job_type,
            job.attempt,
            _became(job),
            one_line(reason),
            extra=_fields(_event(job), job.id, job.job_type, job.attempt, job.ran),
        )
    if unnamed := ordered[NAMED:]:
        counts = Counter(job.status for job in unnamed)
        logger.log(
            _level_of(unnamed[0]),
            "Likewise for %d more jobs (%s): %s",
            len(unnamed),
            ", ".join(f"{count} {status}" for status, count in counts.items()),
            one_line(reason),
            extra={"event": _event(unnamed[0]), "count": len(unnamed)},
        )


def _level_of(job: Rescued) -> int:
    if job.status == QueuedStatus.QUEUED and not job.crashed:
        return logging.INFO
    return _LEVELS[job.status]  # type: ignore[index]  # texts that equal them


def _became(job: Rescued) -> str:
    if job.status == ArchivedStatus.FAILED:
        return f"failed for good ({_why_not_again(job)}) after {job.ran:.3f} s"
    if job.status == ArchivedStatus.CANCELLED:
        return "was cancelled, and ended with its worker"
    if not job.crashed:
        return "was cut off, and is queued again"
    return f"crashed ({job.crashes} of {job.max_crashes}), and is queued again"


def _event(job: Rescued) -> Event:
    if job.crashed:
        return Event.ATTEMPT_CRASHED
    if job.status == QueuedStatus.QUEUED:
        return Event.ATTEMPT_RELEASED
    if job.status == ArchivedStatus.CANCELLED:
        return Event.ATTEMPT_CANCELLED
    return Event.ATTEMPT_FAILED


def _fields(
    event: Event, id: UUID, job_type: str, attempt: int, seconds: float
) -> dict[str, Any]:
    return {
        "event": event,
        "outcome": event.partition(".")[2],
        "job_id": str(id),
        "job_type": job_type,
        "attempt": attempt,
        "seconds": round(seconds, 6),
    }
