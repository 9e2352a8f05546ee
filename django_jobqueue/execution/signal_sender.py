"""Sends the signals about written outcomes, in a thread of its own, so that a slow
receiver delays no completion, lease or rescue."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db import connections
from django.dispatch import Signal

from django_jobqueue import signals
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.execution import connection_reset
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.lost_attempts import Send, announce_lost
from django_jobqueue.processes import forking
from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store.queue.expire import Expired
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.store.queue.rescue import Rescued

logger = logging.getLogger("django_jobqueue.signals")

LONGEST: Final = 10_000  # signals that may wait for their receivers

_OF_VERBS: Final = {
    Verb.SUCCEED: signals.job_succeeded,
    Verb.FAIL: signals.job_failed,
    Verb.RETRY: signals.job_retried,
    Verb.SNOOZE: signals.job_snoozed,
    Verb.CANCEL: signals.job_cancelled,
    Verb.RELEASE: signals.job_released,
    Verb.EXPIRE: signals.job_expired,
}


class Announcer(Loop):
    """Its thread begins with the first signal that somebody listens to."""

    name = "announcer"

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[tuple[Signal, object, dict[str, Any]]] = deque()
        self._sent = threading.Event()  # everything
        self._sent.set()
        self._beginning = threading.Lock()
        self._dropped = 0  # in a row
        self.dropped = 0  # ever

    def send(self, signal: Signal, sender: object, **arguments: Any) -> None:
        """Send this soon; from any thread. Costs next to nothing without receivers."""
        if not signal.receivers:
            return
        if len(self._waiting) >= LONGEST:
            self._drop(signal)
            return
        self._sent.clear()
        self._waiting.append((signal, sender, arguments))
        with self._beginning:
            if self._thread is None or not self._thread.is_alive():
                self.start()
        self.wake()

    def flush(self, timeout: float) -> bool:
        """Wait until everything is sent; False if it took longer than these seconds."""
        return self._sent.wait(timeout)

    def tick(self) -> float:
        """Send what waits; then let the receivers' connections go."""
        while self._waiting:
            signal, sender, arguments = self._waiting.popleft()
            signals.send(signal, sender, **arguments)
            forking.end_if_forked()
            connection_reset.after_job()
        connections.close_all()
        self._dropped = 0
        self._sent.set()
        return 0.0 if self._waiting else FOREVER

    def _drop(self, signal: Signal) -> None:
        self._dropped += 1
        self.dropped += 1
        if self._dropped == 1:
            logger.error(
                "Receivers of signals are too slow: %d signals wait for them, and the "
                "next ones are not sent",
                LONGEST,
            )


announcer: Final = Announcer()  # of this process


def _reset_after_fork() -> None:
    """In the child of a fork: the parent's thread sends the signals that wait there."""
    announcer.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_reset_after_fork)


def announce_end(
    attempt: Attempt, finished: Finished, send: Send = announcer.send
) -> None:
    """Send the signal of an attempt whose outcome is written."""
    announce_outcome(finished, attempt.job.job_type, attempt.job.attempts, send)


def announce_outcome(
    finished: Finished, job_type: str, attempt: int, send: Send = announcer.send
) -> None:
    """The same for an attempt of which only the number is known."""
    signal = _OF_VERBS[finished.outcome.verb]
    if not signal.receivers:
        return
    arguments: dict[str, Any] = {"job_type": job_type, "id": finished.id}
    if signal is not signals.job_expired:
        arguments |= {
            "attempt": attempt,
            "seconds": finished.ran,
            "outcome": finished.outcome,
        }
    send(signal, registry.sender(job_type), **arguments)


def announce_rescued(
    rescued: Sequence[Rescued], reason: str, send: Send = announcer.send
) -> None:
    """Jobs of a worker that is gone were taken from it."""
    announce_lost(rescued, reason, send)


def announce_expired(expired: Iterable[Expired], send: Send = announcer.send) -> None:
    """Waiting jobs were archived because their time was over."""
    for job in expired:
        send(
            signals.job_expired,
            registry.sender(job.job_type),
            job_type=job.job_type,
            id=job.id,
        )
