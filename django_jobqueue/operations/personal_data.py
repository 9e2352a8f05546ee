"""Personal data: where a value stands in all tables; erase it there, or delete the
rows.

``find`` counts the rows, ``start`` lets workers begin. No log line, signal or row of
the audit has the value; the erasure itself has it until it ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id, new_id
from django_jobqueue.domain.personal_value import PersonalValue, problem_of
from django_jobqueue.domain.states import BulkState, ErasureAct
from django_jobqueue.enqueueing.by_name import enqueue
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations import erasure_chunks
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.bulk import COUNTING_PRIORITY
from django_jobqueue.store.bulk.operation_rows import JOB_TYPE, is_queued
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.erasing import erasure_rows
from django_jobqueue.store.erasing.erasure_rows import Erasure

Id = UUID | str
SALT: Final = "django_jobqueue.personal_data"


@sync_only()
def find(value: str, *, key: str = "", by: str = "", here: bool = False) -> Erasure:
    """Count the rows of all tables that hold this value: a draft of an erasure.

    ``key`` is a key of data, or the end of a path of keys: only values under it are
    meant, and no free texts. Many rows are counted by a worker, unless ``here``;
    ``total`` is None until they are. Raises InvalidArguments.
    """
    value, key = value.strip(), key.strip().removeprefix("data.")
    if problem := problem_of(value, key):
        raise InvalidArguments(problem)
    db = DjangoDatabase()
    fingerprint = fingerprints(value)[0]
    id = erasure_rows.draft(db, value=value, key=key, fingerprint=fingerprint, by=by)
    erasure_chunks.work_for(id, math.inf if here else erasure_chunks.AT_ONCE)
    erasure = get(id)
    _record("find", erasure, by, 1)
    if erasure.total is None:
        job = new_id()

        def hand() -> None:
            erasure_rows.hand_over(db, id, job=None, to=job)
            enqueue_job(id, job, priority=COUNTING_PRIORITY)

        db.in_transaction(hand)
    return get(id)


@sync_only()
def start(
    id: Id, act: str, *, reason: str = "", by: str = "", here: bool = False
) -> bool:
    """Let workers erase the values ("erase") or delete the rows ("delete") of a draft;
    False if it is none (any more), or is not counted to the end. With ``here`` the
    caller does it, with ``erasure_steps.work_here``. Raises InvalidArguments,
    LookupError.
    """
    if act not in ErasureAct.values:
        raise InvalidArguments(f"{act!r} is none of {', '.join(ErasureAct.values)}.")
    erasure = get(id)
    everywhere = PersonalValue(erasure.value)  # also where a key is given
    text = everywhere.without(reason)
    db, job = DjangoDatabase(), None if here else new_id()

    def begin() -> bool:
        started = erasure_rows.start(db, erasure.id, act=act, reason=text, job=job)
        if started and job:
            enqueue_job(erasure.id, job)
        return started

    started = db.in_transaction(begin)
    if started:
        _record(f"start {act}", get(id), by, erasure.total or 0)
    return started


@sync_only()
def resume(id: Id, *, by: str = "") -> bool:
    """Let a worker go on with it: after an error, or if its job is gone."""
    erasure, db, job = get(id), DjangoDatabase(), new_id()
    states = [BulkState.FAILED.value]
    if is_abandoned(erasure):
        states += erasure_rows.ACTIVE

    def go_on() -> bool:
        resumed = erasure_rows.resume(db, erasure.id, states, job)
        if resumed:
            enqueue_job(erasure.id, job)
        return resumed

    resumed = db.in_transaction(go_on)
    if resumed:
        _record("resume", erasure, by, 1)
    return resumed


@sync_only()
def stop(id: Id, *, by: str = "") -> bool:
    """End it after the chunk at hand, and forget the value; what it did stays."""
    erasure = get(id)
    stopped = erasure_rows.stop(DjangoDatabase(), erasure.id)
    if stopped:
        _record("stop", erasure, by, 1)
    return stopped


@sync_only()
def discard(id: Id) -> bool:
    """Delete a draft, and with it the value."""
    return erasure_rows.discard(DjangoDatabase(), as_id(id))


@sync_only()
def get(id: Id) -> Erasure:
    """The erasure with this id. Raises LookupError, InvalidArguments."""
    erasure = erasure_rows.read(DjangoDatabase(), as_id(id))
    if erasure is None:
        raise LookupError(f"There is no erasure {id}.")
    return erasure


@sync_only()
def earlier(value: str) -> list[Erasure]:
    """What was done about this value before, the newest first."""
    return erasure_rows.earlier(DjangoDatabase(), fingerprints(value))


def fingerprints(value: str) -> Sequence[str]:
    """Keyed hashes of the value: by SECRET_KEY, then by its fallbacks."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    text = value.strip().casefold()
    hashes = (salted_hmac(SALT, text, secret=s, algorithm="sha256") for s in secrets)
    return [one.hexdigest() for one in hashes]


def is_abandoned(erasure: Erasure) -> bool:
    """Whether it should be at work, or be counted, and the job that does it is gone."""
    active = erasure.state in erasure_rows.ACTIVE
    if erasure.job_id is None:
        return active
    counting = erasure.state == BulkState.DRAFT and erasure.total is None
    return (active or counting) and not is_queued(DjangoDatabase(), erasure.job_id)


def enqueue_job(erasure: UUID, job: UUID, **when: Any) -> None:
    """Enqueue the job that works an erasure off."""
    enqueue(JOB_TYPE, {"erasure": str(erasure)}, id=job, **when)


def record_end(erasure: Erasure, by: str) -> None:
    """Record what an erasure did, at its end."""
    _record(f"end {erasure.act}", erasure, by, erasure.all_changed)


def _record(verb: str, erasure: Erasure, by: str, count: int) -> None:
    details = {
        "erasure": str(erasure.id),
        "fingerprint": erasure.fingerprint,
        "key": erasure.key,
        "rows": dict(erasure.changed or erasure.rows),
        "remaining": dict(erasure.remaining),
        "reason": erasure.reason,
    }
    record(f"{verb} personal data", by, count, details)
