"""Replay: archived jobs are enqueued again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, as_id, keys_of
from django_jobqueue.domain.operation_options import Options
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import BulkKind, ReplayExpiry, SkipReplayed
from django_jobqueue.exceptions import (
    InvalidArguments,
    JobNotFound,
    NotReplayable,
    UnknownJobType,
)
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import Expires, checked_data, checked_options
from django_jobqueue.operations.finding import get_job
from django_jobqueue.store import find as store_find
from django_jobqueue.store.bulk.skips import left_out
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import replay as store_replay
from django_jobqueue.store.queue.insert_once import is_archived
from django_jobqueue.store.rows import Job


class Replayed(dict[UUID, UUID]):
    """The new id of each job that was replayed, by its old one."""

    def __init__(self, made: Mapping[UUID, UUID], left_out: Mapping[UUID, str]) -> None:
        super().__init__(made)
        # Why others were not: "replayed", "at_most_once", "type_gone", "erased".
        self.left_out = left_out


@sync_only()
def replay(
    id: UUID | str,
    *,
    run_after: datetime | None = None,
    expires: Expires = ReplayExpiry.SAME,
    queue: str | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    data: Mapping[str, Any] | None = None,
    new_id: UUID | str | None = None,
    using: str | None = None,
    by: str = "",
) -> Job:
    """Enqueue an archived job again, as a new job that remembers the old one.

    ``expires``: "same" (the default) gives it the lifetime of the old job, from when it
    is due; "keep" copies the old time, so that an expired job expires again; "never";
    or a new moment.
    ``max_attempts`` is for the new job only; None copies the old one's. ``data``
    replaces the old data, and must fit the handler. ``new_id`` makes the replay
    idempotent: if a job has this id, it is returned. Raises JobNotFound,
    NotReplayable, UnknownJobType, InvalidArguments, also for an id of another job.
    """
    job = get_job(id, using=using)
    if not job.is_over:
        raise NotReplayable(job.id, job.status)
    text = None if data is None else checked_data(job.job_type, data)
    options = checked_options(
        Options(),
        run_after=run_after,
        expires=expires,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
    )
    db = DjangoDatabase(using)
    key = None if new_id is None else as_id(new_id)
    if key is not None and (earlier := _made_before(db, job, key)):
        return earlier
    try:
        with transaction.atomic(using=db.alias) if key else nullcontext():
            made = store_replay.replay(
                db, [job.id], options, data=text, by=by, new_id=key
            )
            if key is not None and is_archived(db, key):
                raise IntegrityError(f"Job {key} is archived.")  # undone
    except IntegrityError:  # another request with this id was faster
        if key is not None and (earlier := _made_before(db, job, key)):
            return earlier
        raise
    if not made:
        raise _why_not_replayed(job, using)
    record("replay", by, 1, {"id": str(job.id), "job_type": job.job_type}, using=using)
    return get_job(made[job.id], using=using)


@sync_only()
def replay_many(
    ids: Ids,
    *,
    run_after: datetime | None = None,
    expires: Expires = ReplayExpiry.SAME,
    queue: str | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    skip_replayed: SkipReplayed | str = SkipReplayed.ANY,
    skip_at_most_once: bool = True,
    using: str | None = None,
    by: str = "",
) -> Replayed:
    """Replay these archived jobs; returns the new id of each.

    ``skip_replayed`` leaves out jobs that were replayed before ("any"), only those
    whose replay succeeded ("succeeded"), or none; ``skip_at_most_once`` leaves out
    those of at-most-once types, which may have run. ``left_out`` of the result says
    why.
    The other options are those of ``replay``. Raises InvalidArguments.
    """
    keys = keys_of(ids)
    options = checked_options(
        Options(),
        run_after=run_after,
        expires=expires,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        skip_replayed=skip_replayed,
        skip_at_most_once=skip_at_most_once,
    )
    db = DjangoDatabase(using)

    replayed = db.in_transaction(lambda: _replayed(db, keys, options, by))
    record("replay", by, len(replayed), {"asked": len(keys)}, ids=replayed, using=using)
    return replayed


def _made_before(db: DjangoDatabase, job: Job, id: UUID) -> Job | None:
    """The replay of this job that has the id; None if no job has it. Raises
    InvalidArguments for another job."""
    earlier = store_find.find(db, id)
    if earlier is not None and earlier.replay_of != job.id:
        raise InvalidArguments(f"new_id: job {id} does not replay job {job.id}.")
    return earlier


def _replayed(
    db: DjangoDatabase, ids: list[UUID], options: Options, by: str
) -> Replayed:
    others = left_out(db, BulkKind.REPLAY, ids, options)
    chosen = [id for id in ids if id not in others]
    made = store_replay.replay(db, chosen, options, by=by)
    return Replayed(made, others)


def _why_not_replayed(job: Job, using: str | None) -> Exception:
    """Its personal data were erased, its job type is gone, or the job was pruned
    between the look and the insert."""
    db = DjangoDatabase(using)
    known = store_find.known_names(db)
    if job.job_type not in known:
        return UnknownJobType(job.job_type, registry.near(job.job_type, known))
    if store_replay.is_erased(db, job.id):
        return NotReplayable(job.id, "erased")
    return JobNotFound(job.id)
