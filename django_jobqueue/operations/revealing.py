"""Seeing secrets: nothing changes, and it is told all the same."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id
from django_jobqueue.operations.audit_log import record


@sync_only()
def reveal(id: UUID | str, *, by: str) -> None:
    """Tell that somebody sees the secrets in this job's data. Raises
    InvalidArguments."""
    record("reveal", by, 1, {"id": str(as_id(id))})
