"""The Django signals that are sent. Receivers that raise are logged and harm nothing.

The sender of signals about jobs is the handler, as ``@job`` made it; where the handler
is not known, the name of the job type, which is the argument ``job_type``, too.

================== ====================================================================
signal             arguments besides ``job_type``; when
================== ====================================================================
job_enqueued       job: Job; in the transaction that enqueued it
jobs_enqueued      ids: list of UUID, by enqueue_many; likewise
attempt_started    context: Context; in the handler's thread, or its event loop
attempt_succeeded  context, seconds: float; likewise, before it is written
attempt_failed     context, seconds, outcome: Outcome, error: the exception; likewise,
                   also for what is snoozed, cancelled or released
operated           by: who, count: jobs, details: dict; the sender is the verb, a str
================== ====================================================================
"""

from __future__ import annotations

import logging

from django.dispatch import Signal

logger = logging.getLogger(__name__)

job_enqueued = Signal()
jobs_enqueued = Signal()
attempt_started = Signal()
attempt_succeeded = Signal()
attempt_failed = Signal()
operated = Signal()


def send(signal: Signal, sender: object, **arguments: object) -> None:
    """Send to whoever listens; costs next to nothing when nobody does."""
    if signal.receivers:
        try:
            signal.send_robust(sender, **arguments)
        except Exception:  # Django's own log line about a receiver without a name
            logger.exception("A receiver of a signal about %r failed", sender)


async def asend(signal: Signal, sender: object, **arguments: object) -> None:
    """``send`` from an event loop; async receivers are awaited in it."""
    if signal.receivers:
        try:
            await signal.asend_robust(sender, **arguments)
        except Exception:
            logger.exception("A receiver of a signal about %r failed", sender)
