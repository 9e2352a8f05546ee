"""The pages of the job queue in Django's admin.

Each page is a class that a project may subclass and register instead: unregister ours,
register its own.
"""

from django_jobqueue.admin.archived_jobs import ArchivedJobAdmin
from django_jobqueue.admin.bulk_operations import BulkOperationAdmin
from django_jobqueue.admin.failures import FailureGroupAdmin
from django_jobqueue.admin.job_types import JobTypeAdmin
from django_jobqueue.admin.queued_jobs import QueuedJobAdmin
from django_jobqueue.admin.queues import QueueAdmin
from django_jobqueue.admin.workers import WorkerAdmin

__all__ = [
    "ArchivedJobAdmin",
    "BulkOperationAdmin",
    "FailureGroupAdmin",
    "JobTypeAdmin",
    "QueueAdmin",
    "QueuedJobAdmin",
    "WorkerAdmin",
]
