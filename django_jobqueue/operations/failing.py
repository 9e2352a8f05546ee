"""Fails waiting jobs now, or allows them more attempts."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import check_attempts
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import fail as store_fail
from django_jobqueue.store.control import more_attempts as store_attempts


@sync_only()
def fail(
    ids: Ids, *, reason: str, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Archive these waiting jobs as failed, whatever attempts they have left; returns
    those that were still waiting. What is running is left alone: cancel it."""
    ended = store_fail.fail(DjangoDatabase(using), keys_of(ids), reason=reason)
    record("fail", by, len(ended), {"reason": reason}, ids=ended, using=using)
    return ended


@sync_only()
def allow_attempts(
    ids: Ids, max_attempts: int, *, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Let these waiting jobs have so many attempts, those they had included; returns
    those that were still waiting. All of them or none: raises InvalidArguments if one
    has made so many, which would leave it none."""
    check_attempts(max_attempts)
    db, keys = DjangoDatabase(using), keys_of(ids)
    if (spent := store_attempts.spent(db, keys, max_attempts)) is not None:
        id, made = spent
        were = "attempt was" if made == 1 else "attempts were"
        raise InvalidArguments(
            f"max_attempts must be at least {made + 1}, not {max_attempts}: {made} "
            f"{were} made of job {id}. operations.fail ends a job without another one."
        )
    changed = store_attempts.allow(db, keys, max_attempts)
    record(
        "allow attempts",
        by,
        len(changed),
        {"max_attempts": max_attempts},
        ids=changed,
        using=using,
    )
    return changed
