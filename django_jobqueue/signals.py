"""The Django signals that are sent. Receivers that raise are logged and harm nothing.

================== ======================== ===========================================
signal             sender                   arguments
================== ======================== ===========================================
job_enqueued       the job type's name      job: Job; in the transaction that enqueued
attempt_started    the job type's name      context: Context; in the handler's thread
attempt_succeeded  the job type's name      context: Context, seconds: float
attempt_failed     the job type's name      context: Context, seconds: float,
                                            outcome: Outcome, error: the exception; also
                                            for what is snoozed, cancelled or released
operated           the verb, a str          by: who, count: jobs, details: dict
================== ======================== ===========================================
"""

from __future__ import annotations

from django.dispatch import Signal

job_enqueued = Signal()
attempt_started = Signal()
attempt_succeeded = Signal()
attempt_failed = Signal()
operated = Signal()


def send(signal: Signal, sender: object, **arguments: object) -> None:
    """Send to whoever listens; costs next to nothing when nobody does."""
    if signal.receivers:
        signal.send_robust(sender, **arguments)
