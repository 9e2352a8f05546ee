"""The pages of the job queue in Django's admin.

Each page is a class that a project may subclass and register instead: unregister ours,
register its own.
"""

from django.contrib import admin

from django_jobqueue.admin.alerts.alert_list import AlertAdmin
from django_jobqueue.admin.audit.audit_list import AuditEntryAdmin
from django_jobqueue.admin.bulk.bulk_operations import BulkOperationAdmin
from django_jobqueue.admin.erasures.erasure_list import ErasureAdmin
from django_jobqueue.admin.failures.failure_groups import FailureGroupAdmin
from django_jobqueue.admin.hosts.host_list import HostAdmin
from django_jobqueue.admin.jobs.archived_jobs import ArchivedJobAdmin
from django_jobqueue.admin.jobs.queued_jobs import QueuedJobAdmin
from django_jobqueue.admin.leases.lease_list import LeaseAdmin
from django_jobqueue.admin.limits.limit_list import KeyLimitAdmin
from django_jobqueue.admin.overview.overview_admin import OverviewAdmin
from django_jobqueue.admin.overview.state_line import TEMPLATE
from django_jobqueue.admin.schedules.schedule_list import ScheduleAdmin
from django_jobqueue.admin.searches.job_search_list import JobSearchAdmin
from django_jobqueue.admin.tokens.token_list import TokenAdmin
from django_jobqueue.admin.types.job_types import JobTypeAdmin
from django_jobqueue.admin.types.queues import QueueAdmin
from django_jobqueue.admin.workers.worker_list import WorkerAdmin

__all__ = [
    "AlertAdmin",
    "ArchivedJobAdmin",
    "AuditEntryAdmin",
    "BulkOperationAdmin",
    "ErasureAdmin",
    "FailureGroupAdmin",
    "HostAdmin",
    "JobSearchAdmin",
    "JobTypeAdmin",
    "OverviewAdmin",
    "KeyLimitAdmin",
    "LeaseAdmin",
    "QueueAdmin",
    "QueuedJobAdmin",
    "ScheduleAdmin",
    "TokenAdmin",
    "WorkerAdmin",
]

# The index of all apps says how the queue is, unless the project has one of its own.
if admin.site.index_template is None:
    admin.site.index_template = TEMPLATE
