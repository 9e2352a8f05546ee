"""Free the unique keys of jobs."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import free_key as store_free_key


@sync_only()
def free_keys(ids: Ids, *, using: str | None = None, by: str = "") -> list[UUID]:
    """Free the unique keys of these jobs, so that the same can be enqueued again;
    returns those that held one.

    The jobs stay as they are, whether they wait, run, or are archived or pruned.
    """
    freed = store_free_key.free_keys(DjangoDatabase(using), keys_of(ids))
    record("free key", by, len(freed), {}, ids=freed, using=using)
    return freed
