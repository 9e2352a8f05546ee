"""Pause and resume job types and queues."""

from __future__ import annotations

from datetime import datetime

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import (
    Names,
    checked_moment,
    must_exist,
    names_of,
)
from django_jobqueue.store import find as store_find
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase


@sync_only()
def pause(
    names: Names,
    *,
    queues: bool = False,
    reason: str = "",
    resume_at: datetime | None = None,
    using: str | None = None,
    by: str = "",
) -> list[str]:
    """Pause these job types, or ``queues``; running jobs go on.

    ``names`` is one name, or several; a handler stands for its job type. The pause
    holds from the next claim on, everywhere, until ``resume`` or ``resume_at``. All of
    them or none: raises UnknownJobType, and InvalidArguments, also for an end in the
    past.
    """
    resume_at = checked_moment("resume_at", resume_at)
    names, db = names_of(names), DjangoDatabase(using)
    if resume_at is not None and resume_at <= job_types.clock_time(db):
        raise InvalidArguments(f"resume_at must be in the future, not {resume_at}.")

    def pause_all() -> list[str]:
        changed = job_types.pause(
            db, names, queues=queues, by=by, reason=reason, resume_at=resume_at
        )
        must_exist(db, names, changed)
        return changed

    changed = db.in_transaction(pause_all)
    what = "queues" if queues else "job_types"
    record("pause", by, len(changed), {what: changed, "reason": reason}, using=using)
    return changed


@sync_only()
def resume(
    names: Names,
    *,
    queues: bool = False,
    using: str | None = None,
    by: str = "",
) -> list[str]:
    """Resume these job types, or ``queues``; returns the names of those that were
    paused. Raises UnknownJobType, InvalidArguments."""
    names, db = names_of(names), DjangoDatabase(using)

    def resume_all() -> list[str]:
        changed = job_types.resume(db, names, queues=queues)
        if not queues and (others := set(names) - set(changed)):
            must_exist(db, others, store_find.known_names(db))
        return changed

    changed = db.in_transaction(resume_all)
    what = "queues" if queues else "job_types"
    record("resume", by, len(changed), {what: changed}, using=using)
    return changed
