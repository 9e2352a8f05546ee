"""Release: a running job is taken from a worker that is gone."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from django_jobqueue import signals
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import Ids, keys_of
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.execution.lost_attempts import announce_lost
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import release as store_release
from django_jobqueue.store.queue import rescue as store_rescue
from django_jobqueue.store.queue.rescue import Rescued


@sync_only()
def release(ids: Ids, *, using: str | None = None, by: str = "") -> list[Rescued]:
    """Take these running jobs from workers that are gone, or whose lease lapsed, at
    once and not when a supervisor comes to it.

    As after any crash a job waits again, or is archived: as failed if its type promises
    at most one attempt, or if it crashed too often; as cancelled if it was asked to
    stop. Jobs that a living worker has are left out: cancel those. What a
    ``jobqueue move`` holds that has ended waits again as if it had never been held; do
    that only if the other database is lost, or that move cannot be run again.
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
