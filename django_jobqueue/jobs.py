"""The job queue's own job type. Every process declares it; its work is loaded where it
runs."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django_jobqueue.domain.context import Context
from django_jobqueue.domain.registry import BULK, OWN_PRIORITY
from django_jobqueue.enqueueing.handler import job

# Of all those that go on, in the whole cluster: a count, which somebody waits for, goes
# before the jobs of the project, and so takes no more slots than these.
CONCURRENCY: Final = 2


@job(
    name=BULK,
    priority=OWN_PRIORITY,
    concurrency=CONCURRENCY,
    max_attempts=10,
    max_crashes=20,  # whoever crashes the worker, it is not this job
    timeout=None,
    takes_context=True,
)
def bulk(
    context: Context, operation: str = "", erasure: str = "", search: str = ""
) -> None:
    """Work off a bulk operation or an erasure that an operator started, or count one
    that is drafted; or carry on a search."""
    from django_jobqueue.operations import bulk, job_searches, personal_data

    if erasure:
        personal_data.WORK.run_job(context, UUID(erasure))
    elif search:
        job_searches.WORK.run_job(context, UUID(search))
    else:
        bulk.WORK.run_job(context, UUID(operation))
