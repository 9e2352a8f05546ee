"""Moves waiting jobs to another time, priority or queue."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import check, checked_moment
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import reschedule as store_reschedule


@sync_only()
def run_now(ids: Ids, *, using: str | None = None, by: str = "") -> list[UUID]:
    """Let these waiting jobs run now; returns those that were still waiting."""
    changed = store_reschedule.reschedule(DjangoDatabase(using), keys_of(ids), now=True)
    record("run now", by, len(changed), {}, ids=changed, using=using)
    return changed


@sync_only()
def reschedule(
    ids: Ids,
    *,
    run_after: datetime | None = None,
    priority: int | None = None,
    queue: str | None = None,
    using: str | None = None,
    by: str = "",
) -> list[UUID]:
    """Change when, how urgently or where these waiting jobs run; returns those that
    were still waiting. Raises InvalidArguments."""
    run_after = checked_moment("run_after", run_after)
    check(priority=priority, queue=queue)
    changed = store_reschedule.reschedule(
        DjangoDatabase(using),
        keys_of(ids),
        run_after=run_after,
        priority=priority,
        queue=queue,
    )
    record(
        "reschedule",
        by,
        len(changed),
        {"run_after": str(run_after or "")},
        ids=changed,
        using=using,
    )
    return changed
