"""Cancels queued and running jobs."""

from __future__ import annotations

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import cancel as store_cancel
from django_jobqueue.store.control.cancel import Cancelled


@sync_only()
def cancel(
    ids: Ids, *, reason: str = "", using: str | None = None, by: str = ""
) -> Cancelled:
    """Cancel these jobs: queued ones are archived, running ones are asked to stop.

    Ids that are neither queued nor running are left out.
    """
    text = reason or (f"cancelled by {by}" if by else "cancelled")
    cancelled = store_cancel.cancel(DjangoDatabase(using), keys_of(ids), reason=text)
    count = len(cancelled.archived) + len(cancelled.asked)
    details = {"asked_to_stop": len(cancelled.asked), "reason": text}
    record(
        "cancel",
        by,
        count,
        details,
        ids=[*cancelled.archived, *cancelled.asked],
        using=using,
    )
    return cancelled
