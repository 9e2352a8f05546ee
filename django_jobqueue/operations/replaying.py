"""Replay: archived jobs are enqueued again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.domain.policy import WHO_LENGTH
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import ReplayExpiry
from django_jobqueue.enqueueing.options import expires_first
from django_jobqueue.exceptions import (
    InvalidArguments,
    JobNotFound,
    NotReplayable,
    UnknownJobType,
)
from django_jobqueue.operations.audit_log import tell
from django_jobqueue.operations.checks import (
    check,
    check_attempts,
    checked_data,
    checked_moment,
)
from django_jobqueue.operations.finding import get_job
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import replay as store_replay
from django_jobqueue.store.control.replay import Replay
from django_jobqueue.store.rows import Job


@sync_only()
def replay(
    id: UUID | str,
    *,
    run_after: datetime | None = None,
    expires: str | datetime | None = ReplayExpiry.KEEP,
    queue: str | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    data: Mapping[str, Any] | None = None,
    using: str | None = None,
    by: str = "",
) -> Job:
    """Enqueue an archived job again, as a new job that remembers the old one.

    ``expires``: "keep" copies the old moment, so that a job that expired expires again;
    "same" gives it the same time to live from now; None is never; or a new moment.
    ``max_attempts`` is for the new job alone; None is what the old one had. ``data``
    replaces the old data, and must fit the handler. Raises JobNotFound, NotReplayable,
    UnknownJobType, InvalidArguments.
    """
    job = get_job(id, using=using)
    if not job.is_over:
        raise NotReplayable(job.id, job.status)
    text = None if data is None else checked_data(job.job_type, data)
    how = _how(expires, by, run_after, queue, priority, max_attempts, text)
    made = store_replay.replay(DjangoDatabase(using), [job.id], how)
    if not made:
        raise _why_not_replayed(job, using)
    tell("replay", by, 1, {"id": str(job.id), "job_type": job.job_type})
    return get_job(made[job.id], using=using)


@sync_only()
def replay_many(
    ids: Ids,
    *,
    run_after: datetime | None = None,
    expires: str | datetime | None = ReplayExpiry.KEEP,
    queue: str | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    using: str | None = None,
    by: str = "",
) -> dict[UUID, UUID]:
    """Replay these archived jobs; returns the new id of each that could be.

    Ids that are not archived, or whose job type is gone, are left out.
    """
    keys = keys_of(ids)
    how = _how(expires, by, run_after, queue, priority, max_attempts)
    made = store_replay.replay(DjangoDatabase(using), keys, how)
    tell("replay", by, len(made), {"asked": len(keys)})
    return made


def _how(
    expires: str | datetime | None,
    by: str,
    run_after: datetime | None,
    queue: str | None,
    priority: int | None,
    max_attempts: int | None,
    data: str | None = None,
) -> Replay:
    check(priority=priority, queue=queue)
    check_attempts(max_attempts)
    run_after = checked_moment("run_after", run_after)
    expiry, expires_at = _expiry(expires)
    if run_after and expires_at and expires_at <= run_after:
        raise InvalidArguments(expires_first(run_after, expires_at))
    return Replay(
        run_after=run_after,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        data=data,
        expiry=expiry,
        expires_at=expires_at,
        by=by[:WHO_LENGTH] or None,
    )


def _expiry(expires: str | datetime | None) -> tuple[ReplayExpiry, datetime | None]:
    if isinstance(expires, datetime):
        return ReplayExpiry.NEW, checked_moment("expires", expires)
    if expires is None:
        return ReplayExpiry.NEVER, None
    if expires in (ReplayExpiry.KEEP, ReplayExpiry.SAME):
        return ReplayExpiry(expires), None
    raise InvalidArguments(
        f"expires must be 'keep', 'same', None or a datetime, not {expires!r}."
    )


def _why_not_replayed(job: Job, using: str | None) -> Exception:
    """Between the look and the insert the job was pruned, or its job type is gone."""
    known = store_find.known_names(DjangoDatabase(using))
    if job.job_type not in known:
        return UnknownJobType(job.job_type, registry.near(job.job_type, known))
    return JobNotFound(job.id)
