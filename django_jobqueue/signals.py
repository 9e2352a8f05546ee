"""The Django signals that are sent. Receivers that raise are logged and harm nothing.

The sender of signals about jobs is the handler, as ``@job`` made it; where the handler
is not known, the name of the job type, which is the argument ``job_type``, too.

================== ====================================================================
signal             arguments besides ``job_type``
================== ====================================================================
In the transaction that enqueues:

job_enqueued       job: Job
jobs_enqueued      ids: list of UUID; by enqueue_many

In the handler's thread, or its event loop, before the outcome is written; receivers
that take longer than GRACE are not waited for:

attempt_started    context: Context
attempt_succeeded  context, seconds: float
attempt_failed     context, seconds, outcome: Outcome, error: the exception; also for
                   what is retried, snoozed, cancelled or released

When it was written, in a thread of the worker that does nothing else:

job_succeeded      id: UUID, attempt: int, seconds: float, outcome: Outcome
job_failed         the same; no further attempt will be made
job_retried        the same; there will be another attempt
job_snoozed        the same; likewise, and this one is not spent
job_cancelled      the same; by the handler, or by an operator while it ran
job_released       the same; its worker stops

The same in a thread of the maintenance process; job_failed, job_retried and
job_cancelled also there if the worker died, expired ones also in the worker:

job_expired        id
job_rescued        id, status: what it is now, reason: str; its worker is gone
jobs_pruned        count: int; without a job type and a sender

About processes, workers and operators:

process_started    process: "worker", "maintenance" or "exporter"; without a job type
                   and a sender; before anything else happens in a forked process
worker_started     name: host:pid, worker_id: int, queues; sender: the class Worker
worker_stopped     the same
operated           verb: str, by: who, count: jobs, details: dict; sender: the verb
================== ====================================================================
"""

from __future__ import annotations

import logging

from django.dispatch import Signal

logger = logging.getLogger("django_jobqueue.signals")

job_enqueued = Signal()
jobs_enqueued = Signal()
attempt_started = Signal()
attempt_succeeded = Signal()
attempt_failed = Signal()
job_succeeded = Signal()
job_failed = Signal()
job_retried = Signal()
job_snoozed = Signal()
job_cancelled = Signal()
job_released = Signal()
job_expired = Signal()
job_rescued = Signal()
jobs_pruned = Signal()
process_started = Signal()
worker_started = Signal()
worker_stopped = Signal()
operated = Signal()

# Of what attempts came to.
OF_ENDS = (
    *(job_succeeded, job_failed, job_retried, job_snoozed, job_cancelled),
    *(job_released, job_expired),
)


def send(signal: Signal, sender: object, **arguments: object) -> None:
    """Send to whoever listens; costs next to nothing when nobody does."""
    if signal.receivers:
        try:
            signal.send_robust(sender, **arguments)
        except (Exception, SystemExit):  # also Django's own line about a nameless one
            logger.exception("A receiver of a signal about %r failed", sender)


async def asend(signal: Signal, sender: object, **arguments: object) -> None:
    """``send`` from an event loop; async receivers are awaited in it."""
    if signal.receivers:
        try:
            await signal.asend_robust(sender, **arguments)
        except Exception:
            logger.exception("A receiver of a signal about %r failed", sender)
