"""A job queue for Django on PostgreSQL.

The public names::

    from django_jobqueue import job, Retry

    @job(queue="mail", max_attempts=10)
    def send_receipt(order_id: int) -> None: ...

    send_receipt.enqueue(order_id=7)
"""

from django_jobqueue.context import Context, current_job
from django_jobqueue.exceptions import (
    AlreadyArchived,
    Cancel,
    DuplicateJob,
    EnqueueError,
    Fail,
    InvalidArguments,
    JobChanged,
    JobNotFound,
    JobQueueError,
    JobTimeout,
    LeaseLost,
    NoCurrentJob,
    NotEditable,
    NotReplayable,
    Retry,
    Snooze,
    StoreUnavailable,
    UnknownJobType,
)
from django_jobqueue.handler import Handler, aenqueue, enqueue, job
from django_jobqueue.triage import cancel, get_job, replay

__version__ = "0.1.0"

__all__ = [
    "AlreadyArchived",
    "Cancel",
    "Context",
    "DuplicateJob",
    "EnqueueError",
    "Fail",
    "Handler",
    "InvalidArguments",
    "JobChanged",
    "JobNotFound",
    "JobQueueError",
    "JobTimeout",
    "LeaseLost",
    "NoCurrentJob",
    "NotEditable",
    "NotReplayable",
    "Retry",
    "Snooze",
    "StoreUnavailable",
    "UnknownJobType",
    "aenqueue",
    "cancel",
    "current_job",
    "enqueue",
    "get_job",
    "job",
    "replay",
]
