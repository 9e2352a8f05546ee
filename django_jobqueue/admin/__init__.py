"""The pages of the job queue in Django's admin.

Each page is a class that a project may subclass and register instead: unregister ours,
register its own. A page is imported when it is first used.
"""

from typing import TYPE_CHECKING, Final

from django.contrib import admin

from django_jobqueue import models
from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.text.lazy_names import lazily

if TYPE_CHECKING:
    from django_jobqueue.admin.audit.audit_list import AuditEntryAdmin
    from django_jobqueue.admin.bulk.bulk_operations import BulkOperationAdmin
    from django_jobqueue.admin.failures.failure_groups import FailureGroupAdmin
    from django_jobqueue.admin.hosts.host_list import HostAdmin
    from django_jobqueue.admin.jobs.archived_jobs import ArchivedJobAdmin
    from django_jobqueue.admin.jobs.queued_jobs import QueuedJobAdmin
    from django_jobqueue.admin.limits.limit_list import KeyLimitAdmin
    from django_jobqueue.admin.overview.overview_admin import OverviewAdmin
    from django_jobqueue.admin.types.job_types import JobTypeAdmin
    from django_jobqueue.admin.types.queues import QueueAdmin
    from django_jobqueue.admin.workers.worker_list import WorkerAdmin

__all__ = [
    "ArchivedJobAdmin",
    "AuditEntryAdmin",
    "BulkOperationAdmin",
    "FailureGroupAdmin",
    "HostAdmin",
    "JobTypeAdmin",
    "OverviewAdmin",
    "KeyLimitAdmin",
    "QueueAdmin",
    "QueuedJobAdmin",
    "WorkerAdmin",
]

# The module of each model's page, which is named after the model: AlertAdmin.
_MODULES: Final = {
    "ArchivedJob": "jobs.archived_jobs",
    "AuditEntry": "audit.audit_list",
    "BulkOperation": "bulk.bulk_operations",
    "FailureGroup": "failures.failure_groups",
    "Host": "hosts.host_list",
    "JobType": "types.job_types",
    "KeyLimit": "limits.limit_list",
    "Overview": "overview.overview_admin",
    "Queue": "types.queues",
    "QueuedJob": "jobs.queued_jobs",
    "Worker": "workers.worker_list",
}
_NAMES: Final = {
    f"{model}Admin": f"{__name__}.{module}" for model, module in _MODULES.items()
}
__getattr__, __dir__ = lazily(globals(), _NAMES)

for _name, _module in _NAMES.items():
    admin.site.register(
        getattr(models, _name.removesuffix("Admin")), lazy_page(f"{_module}.{_name}")
    )

# The index of all apps says how the queue is, unless the project has one of its own.
if admin.site.index_template is None:
    admin.site.index_template = "admin/jobqueue/index.html"
