"""Attempts that do not stop: their outcomes are recorded without them, and logged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from django.db import connections

from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import notify_end
from django_jobqueue.execution.observed_attempts import report_lost
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.workers.executors.base import in_thread
from django_jobqueue.workers.watchdog import waits_for_another

logger = logging.getLogger("django_jobqueue.worker")


def record_in_thread(
    add: Callable[[Attempt, Finished], None],
    attempts: Sequence[Attempt],
    within: float,
    consequence: str = "its worker process was replaced",
) -> threading.Thread | None:
    """Record the outcomes of attempts that hang, then notify of them, in a thread of
    its own, because either step may hang again. Waits at most ``within`` seconds."""

    def record() -> None:
        recorded, unannounced = [], []
        for attempt in attempts:
            if attempt.over:
                finished = attempt.finish_ended(consequence)
            elif attempt.asked is not StopReason.NOTHING:
                finished = attempt.finish_unresponsive(consequence)
                unannounced.append((attempt, finished))
            else:
                continue
            add(attempt, finished)
            recorded.append((attempt, finished))
        for attempt, finished in recorded:
            report_lost(attempt, finished)
        for attempt, finished in unannounced:
            notify_end(attempt, finished)
        connections.close_all()

    if not attempts:
        return None
    recording = in_thread("hung", record)
    recording.join(within)
    return recording


def report_ended(attempts: Sequence[Attempt]) -> None:
    """Report attempts whose outcomes are known to the observers that wait for them."""
    for attempt in attempts:
        report_lost(attempt, attempt.finish_ended())


def log_unresponsive(attempt: Attempt) -> None:
    """Log that its worker process will be replaced for it."""
    if waits_for_another(attempt):
        return
    what = "Code after the end of job" if attempt.over else "Job"
    logger.error(
        "%s %s (%s) does not stop; this worker will be replaced",
        what,
        attempt.job.id,
        attempt.job.job_type,
    )
