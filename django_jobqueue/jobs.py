"""The job queue's own job type. Every process declares it; its work is loaded where it
runs."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django_jobqueue.domain.context import Context
from django_jobqueue.domain.registry import BULK, OWN_PRIORITY
from django_jobqueue.enqueueing.job_decorator import job
from django_jobqueue.exceptions import Fail
from django_jobqueue.rooms import load, named

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
def bulk(context: Context, /, **work: str) -> None:
    """Carry on what an operator started, such as a bulk operation, or count one that is
    drafted: the id of its row, by the name of the work."""
    works = named("chunked_work")
    for name, id in work.items():
        if name not in works:
            raise Fail(f"No app of INSTALLED_APPS has work that is named {name!r}.")
        load(works[name]).run_job(context, UUID(id))
