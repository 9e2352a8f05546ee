"""Pause and resume job types and queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.registry import registry
from django_jobqueue.store import find as store_find
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.triage.checks import check
from django_jobqueue.triage.telling import tell


def pause(
    names: Sequence[str],
    *,
    queues: bool = False,
    reason: str = "",
    resume_at: datetime | None = None,
    by: str = "",
) -> list[str]:
    """Stop the claiming of these job types, or ``queues``; what runs goes on.

    It holds from the next claim on, everywhere, until ``resume`` or ``resume_at``.
    All of them or none: raises UnknownJobType.
    """
    check(resume_at=resume_at)
    db = DjangoDatabase()
    with transaction.atomic(using=db.alias):
        changed = job_types.pause(
            db, names, queues=queues, by=by, reason=reason, resume_at=resume_at
        )
        _must_exist(db, names, changed)
    what = "queues" if queues else "job_types"
    tell("pause", by, len(changed), {what: changed, "reason": reason})
    return changed


def resume(names: Sequence[str], *, queues: bool = False, by: str = "") -> list[str]:
    """Let these job types, or ``queues``, be claimed again. Raises UnknownJobType."""
    db = DjangoDatabase()
    with transaction.atomic(using=db.alias):
        changed = job_types.resume(db, names, queues=queues)
        if not queues:
            _must_exist(db, names, changed)
    what = "queues" if queues else "job_types"
    tell("resume", by, len(changed), {what: changed})
    return changed


def _must_exist(db: DjangoDatabase, names: Sequence[str], found: list[str]) -> None:
    for name in names:
        if name not in found:
            near = registry.near(name, store_find.known_names(db))
            raise UnknownJobType(name, near)
