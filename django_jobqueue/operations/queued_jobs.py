"""Operators' actions on waiting and running jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

from django.db import IntegrityError, transaction

from django_jobqueue import signals
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.enqueueing import by_name
from django_jobqueue.enqueueing.options import JobOptions
from django_jobqueue.exceptions import (
    DuplicateJob,
    InvalidArguments,
    JobChanged,
    NotEditable,
)
from django_jobqueue.execution.lost_attempts import announce_lost
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import (
    check,
    check_attempts,
    checked_data,
    checked_moment,
)
from django_jobqueue.operations.finding import get_job
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import cancel as store_cancel
from django_jobqueue.store.control import edit as store_edit
from django_jobqueue.store.control import fail as store_fail
from django_jobqueue.store.control import free_key as store_free_key
from django_jobqueue.store.control import more_attempts as store_attempts
from django_jobqueue.store.control import reschedule as store_reschedule
from django_jobqueue.store.control.cancel import Cancelled
from django_jobqueue.store.queue import release as store_release
from django_jobqueue.store.queue import rescue as store_rescue
from django_jobqueue.store.queue.rescue import Rescued
from django_jobqueue.store.rows import Job


@sync_only()
def enqueue(
    job_type: str,
    data: Mapping[str, Any],
    *,
    by: str = "",
    **options: Unpack[JobOptions],
) -> Job:
    """Enqueue a job by the name of its type, as an operator does by hand.

    It has the options and errors of ``django_jobqueue.enqueue``, except that a
    duplicate always raises DuplicateJob, so that the operator notices: there is no
    ``on_duplicate``. ``by`` names the operator.
    """
    given: dict[str, Any] = {**options}
    job = by_name.enqueue(
        job_type, data, enqueued_by=by or None, on_duplicate="raise", **given
    )
    details = {"id": str(job.id), "job_type": job.job_type}
    record("enqueue", by, 1, details, using=given.get("using"))
    return job


@sync_only()
def run_now(ids: Ids, *, using: str | None = None, by: str = "") -> list[UUID]:
    """Run these waiting jobs now; returns those that were still waiting."""
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
    """Change the time, priority or queue of these waiting jobs; returns those that were
    still waiting. Raises InvalidArguments."""
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


@sync_only()
def edit_data(
    id: UUID | str,
    data: Mapping[str, Any],
    *,
    expected: str | None = None,
    using: str | None = None,
    by: str = "",
) -> Job:
    """Replace a waiting job's data, if the new data fits its handler.

    ``expected`` is the JSON text of the data that you read: if the data has changed
    since, nothing is written. Raises JobNotFound, NotEditable if the job is running or
    has ended, JobChanged, InvalidArguments, DuplicateJob if another job has the unique
    key of the new data.
    """
    job = get_job(id, using=using)
    text = checked_data(job.job_type, data)
    db = DjangoDatabase(using)
    try:
        edited = db.in_transaction(lambda: store_edit.edit(db, job.id, text, expected))
    except IntegrityError:
        raise DuplicateJob(
            f"Nothing was changed: with this data, {job.job_type} would have the "
            "unique key of another job."
        ) from None
    if edited is None:
        raise NotEditable(job.id, get_job(job.id, using=using).status)
    if edited.status != "queued":
        raise NotEditable(job.id, edited.status)
    if not edited.is_done:
        raise JobChanged(job.id)
    record(
        "edit data", by, 1, {"id": str(job.id), "job_type": job.job_type}, using=using
    )
    return get_job(job.id, using=using)


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


@sync_only()
def fail(
    ids: Ids, *, reason: str, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Archive these waiting jobs as failed, even with attempts left; returns those that
    were still waiting. Running jobs are left alone: cancel them."""
    ended = store_fail.fail(DjangoDatabase(using), keys_of(ids), reason=reason)
    record("fail", by, len(ended), {"reason": reason}, ids=ended, using=using)
    return ended


@sync_only()
def allow_attempts(
    ids: Ids, max_attempts: int, *, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Set the maximum of attempts of these waiting jobs, including past attempts;
    returns those that were still waiting. All of them or none: raises InvalidArguments
    if one would have no attempt left."""
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


@sync_only()
def release(ids: Ids, *, using: str | None = None, by: str = "") -> list[Rescued]:
    """Take these running jobs from dead or lapsed workers at once, before a host
    rescues them.

    As after any crash a job waits again, or is archived: as failed if its type promises
    at most one attempt, or if it crashed too often; as cancelled if it was asked to
    stop. Jobs of living workers are left out: cancel those. A job that an ended
    ``jobqueue move`` still holds waits again as before; do that only if the other
    database is lost, or that move cannot be run again.
    """
    reason = "its worker is gone" + (f"; released by {by}" if by else "")
    db = DjangoDatabase(using)
    keys = keys_of(ids)
    with transaction.atomic(using=db.alias):
        lost = store_rescue.take_over(db, keys, reason=reason)
        held = store_release.take_from_moves(db, keys)
    announce_lost(lost, reason, signals.send)
    released = [*lost, *(_waits(*one) for one in held)]
    record(
        "release", by, len(released), {}, ids=[one.id for one in released], using=using
    )
    return released


def _waits(id: UUID, job_type: str, is_cancelled: bool) -> Rescued:
    status = ArchivedStatus.CANCELLED if is_cancelled else QueuedStatus.QUEUED
    return Rescued(id, job_type, status, crashed=False, is_failure=False)


@sync_only()
def free_keys(ids: Ids, *, using: str | None = None, by: str = "") -> list[UUID]:
    """Free the unique keys of these jobs, so that duplicates can be enqueued; returns
    those that held one.

    The jobs stay as they are, whether they wait, run, or are archived or pruned.
    """
    freed = store_free_key.free_keys(DjangoDatabase(using), keys_of(ids))
    record("free key", by, len(freed), {}, ids=freed, using=using)
    return freed
