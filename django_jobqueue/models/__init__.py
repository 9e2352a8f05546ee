"""What Django, the admin, migrations and your queries look at jobs through.

Nothing here changes a job: ``django_jobqueue.store`` does, in SQL, and
``django_jobqueue.operations`` is what an operator's code calls. Every column has a
database default, so a plain INSERT of a job type and data enqueues, too.
"""

from django_jobqueue.models.archived_job import ArchivedJob
from django_jobqueue.models.audit_entry import AuditEntry
from django_jobqueue.models.bulk_operation import BulkOperation
from django_jobqueue.models.database_identity import DatabaseIdentity
from django_jobqueue.models.failure_group import Failure, FailureGroup, FailureRollup
from django_jobqueue.models.job_type import JobType
from django_jobqueue.models.limits import Bucket, KeyLimit, KeyOverride, UniqueWindow
from django_jobqueue.models.queued_job import QueuedJob
from django_jobqueue.models.queues import Overview, Queue
from django_jobqueue.models.report import Report
from django_jobqueue.models.rollups import Figures, Rollup
from django_jobqueue.models.total import ArchivedCount, Total
from django_jobqueue.models.workers import Host, Worker

__all__ = [
    "ArchivedCount",
    "ArchivedJob",
    "AuditEntry",
    "Bucket",
    "BulkOperation",
    "DatabaseIdentity",
    "Failure",
    "FailureGroup",
    "FailureRollup",
    "Figures",
    "Host",
    "JobType",
    "KeyLimit",
    "KeyOverride",
    "Overview",
    "Queue",
    "QueuedJob",
    "Report",
    "Rollup",
    "Total",
    "UniqueWindow",
    "Worker",
]
