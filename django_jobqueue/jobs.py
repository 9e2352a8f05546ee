"""The job queue's own job type. Every process declares it; its work is loaded where it
runs."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django_jobqueue.domain.context import Context
from django_jobqueue.domain.registry import BULK
from django_jobqueue.enqueueing.handler import job

PRIORITY: Final = -50  # after the jobs of the project


@job(
    name=BULK,
    priority=PRIORITY,
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
    if erasure:
        from django_jobqueue.operations.erasure_steps import ErasureSlice

        ErasureSlice(context, UUID(erasure)).work()
    elif search:
        from django_jobqueue.operations.search_slice import SearchSlice

        SearchSlice(context, UUID(search)).work()
    else:
        from django_jobqueue.operations.bulk_slice import Slice

        Slice(context, UUID(operation)).work()
