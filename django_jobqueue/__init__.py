"""A job queue for Django on PostgreSQL.

The public names::

    from django_jobqueue import job, Retry

    @job(queue="mail", max_attempts=10)
    def send_receipt(order_id: int) -> None: ...

    send_receipt.enqueue(order_id=7)
"""

from typing import TYPE_CHECKING, Any

from django_jobqueue.domain.context import Context, current_job
from django_jobqueue.enqueueing.by_name import (
    aenqueue,
    aenqueue_many,
    enqueue,
    enqueue_many,
)
from django_jobqueue.enqueueing.handler import Handler, job
from django_jobqueue.exceptions import (
    AlreadyArchived,
    Cancel,
    DuplicateJob,
    EnqueueError,
    Fail,
    InvalidArguments,
    InvalidResult,
    JobCancelled,
    JobChanged,
    JobExpired,
    JobLost,
    JobNotFound,
    JobQueueError,
    JobTimeout,
    LeaseLost,
    NoCurrentJob,
    NotDone,
    NotEditable,
    NotReplayable,
    Retry,
    Snooze,
    StoreUnavailable,
    UnknownJobType,
)
from django_jobqueue.operations import cancel, get_job, replay
from django_jobqueue.store.rows import Job
from django_jobqueue.waiting import await_, wait

if TYPE_CHECKING:
    from django_jobqueue.embedded import worker

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
    "InvalidResult",
    "Job",
    "JobCancelled",
    "JobChanged",
    "JobExpired",
    "JobLost",
    "JobNotFound",
    "JobQueueError",
    "JobTimeout",
    "LeaseLost",
    "NoCurrentJob",
    "NotDone",
    "NotEditable",
    "NotReplayable",
    "Retry",
    "Snooze",
    "StoreUnavailable",
    "UnknownJobType",
    "aenqueue",
    "aenqueue_many",
    "await_",
    "cancel",
    "current_job",
    "enqueue",
    "enqueue_many",
    "get_job",
    "job",
    "replay",
    "wait",
    "worker",
]


def __getattr__(name: str) -> Any:
    """What only few processes need is loaded when it is asked for."""
    if name == "worker":
        from django_jobqueue.embedded import worker

        return worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
