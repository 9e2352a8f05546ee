"""A job queue for Django on PostgreSQL.

The public names::

    from django_jobqueue import job, Retry

    @job(queue="mail", max_attempts=10)
    def send_receipt(order_id: int) -> None: ...

    send_receipt.enqueue(order_id=7)
"""

from typing import TYPE_CHECKING, Final

from django_jobqueue.domain.context import Context, current_job
from django_jobqueue.domain.per_key import PerKey
from django_jobqueue.domain.rates import Rate
from django_jobqueue.domain.retry_rules import RetryRule
from django_jobqueue.domain.schedule_rules import cron, every
from django_jobqueue.enqueueing.by_name import (
    aenqueue,
    aenqueue_many,
    enqueue,
    enqueue_many,
)
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.enqueueing.job_decorator import job
from django_jobqueue.exceptions import (
    AlreadyArchived,
    Cancel,
    ClaimLost,
    DeclaredInCode,
    DuplicateJob,
    EndpointError,
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
    LeaseUnavailable,
    MetricsExtraMissing,
    NoCurrentJob,
    NotDelivered,
    NotDone,
    NotEditable,
    NotReplayable,
    RemoteExtraMissing,
    Retry,
    Snooze,
    StoreUnavailable,
    UnknownJobType,
    UnknownSchedule,
)
from django_jobqueue.store.rows import Job
from django_jobqueue.text.lazy_names import lazily

if TYPE_CHECKING:
    from django_jobqueue.embedded import worker
    from django_jobqueue.enqueueing.remote import remote_job
    from django_jobqueue.operations import cancel, get_job, replay
    from django_jobqueue.waiting import await_, wait

__version__ = "0.1.0"

__all__ = [
    "AlreadyArchived",
    "Cancel",
    "ClaimLost",
    "Context",
    "DeclaredInCode",
    "DuplicateJob",
    "EndpointError",
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
    "LeaseUnavailable",
    "MetricsExtraMissing",
    "NoCurrentJob",
    "NotDelivered",
    "NotDone",
    "NotEditable",
    "NotReplayable",
    "PerKey",
    "Rate",
    "RemoteExtraMissing",
    "Retry",
    "RetryRule",
    "Snooze",
    "StoreUnavailable",
    "UnknownJobType",
    "UnknownSchedule",
    "aenqueue",
    "aenqueue_many",
    "await_",
    "cancel",
    "cron",
    "current_job",
    "enqueue",
    "enqueue_many",
    "every",
    "get_job",
    "job",
    "remote_job",
    "replay",
    "wait",
    "worker",
]


# A process that only enqueues needs none of these, nor the modules behind them.
_LAZY: Final = {
    "await_": "django_jobqueue.waiting",
    "cancel": "django_jobqueue.operations",
    "get_job": "django_jobqueue.operations",
    "remote_job": "django_jobqueue.enqueueing.remote",
    "replay": "django_jobqueue.operations",
    "wait": "django_jobqueue.waiting",
    "worker": "django_jobqueue.embedded",
}
__getattr__, __dir__ = lazily(globals(), _LAZY)
