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

from django_jobqueue.contrib.privacy import erase_chunk, erasure_rows
from django_jobqueue.contrib.privacy.erasure_rows import ERASURES, Erasure
from django_jobqueue.contrib.privacy.personal_value import (
    ErasureAct,
    PersonalValue,
    problem_of,
)
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import WorkState
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.chunked_work import ChunkedWork
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.work_rows import ACTIVE, Chunk

Id = UUID | str
AT_ONCE: Final = 0.4  # seconds that whoever searches waits for
SALT: Final = "django_jobqueue.personal_data"


class ErasureWork(ChunkedWork[Erasure]):
    """Erasures: a draft counts the rows that hold the value. It is in no error and in
    no record, and forgotten at the end."""

    table = ERASURES
    noun = "erasure"
    plural = "erasures"
    argument = "erasure"
    shows_errors = False
    leaves_out = True

    def goes_on(self, row: Erasure) -> bool:
        """Also a draft that is not counted to the end."""
        is_draft = row.state == WorkState.DRAFT
        return row.state in ACTIVE or (is_draft and row.total is None)

    def chunk(
        self,
        db: DjangoDatabase,
        row: Erasure,
        *,
        max_rows: int,
        most: int | None,
        **more: Any,
    ) -> Chunk:
        """Count or change the next rows."""
        return erase_chunk.chunk(db, row, max_rows=max_rows, **more)

    def record(self, verb: str, row: Erasure, by: str, count: int) -> None:
        """By the fingerprint of the value."""
        details = {
            "erasure": str(row.id),
            "fingerprint": row.fingerprint,
            "key": row.key,
            "rows": dict(row.changed or row.rows),
            "remaining": dict(row.remaining),
            "reason": row.reason,
        }
        record(f"{verb} personal data", by, count, details)

    def record_end(self, row: Erasure) -> None:
        """With the number of changed rows."""
        self.record(f"end {row.act}", row, row.created_by, row.all_changed)


WORK: Final = ErasureWork()
get, resume, stop, discard = WORK.get, WORK.resume, WORK.stop, WORK.discard
is_abandoned, work_here = WORK.is_abandoned, WORK.work_here


@sync_only()
def find(value: str, *, key: str = "", by: str = "", here: bool = False) -> Erasure:
    """Draft an erasure: count the rows of all tables that contain this value.

    ``key`` is a key of data, or the end of a path of keys: then only values under it
    match, and no free text. A worker counts many rows, unless ``here``; ``total`` is
    None until they are counted. Raises InvalidArguments.
    """
    value, key = value.strip(), key.strip().removeprefix("data.")
    if problem := problem_of(value, key):
        raise InvalidArguments(problem)
    db = DjangoDatabase()
    if not here:
        WORK.check_room(by, new_id())
    fingerprint = fingerprints(value)[0]
    id = erasure_rows.draft(db, value=value, key=key, fingerprint=fingerprint, by=by)
    WORK.run_for(id, math.inf if here else AT_ONCE)
    erasure = get(id)
    WORK.record("find", erasure, by, 1)
    if erasure.total is None:
        WORK.hand_over(id, job=None)
    return get(id)


@sync_only()
def start(
    id: Id, act: str, *, reason: str = "", by: str = "", here: bool = False
) -> bool:
    """Let workers erase the values ("erase") or delete the rows ("delete") of a draft;
    False if it is not a draft (any more), or not fully counted. With ``here`` the
    caller does it, with ``personal_data.work_here``. Raises InvalidArguments,
    LookupError.
    """
    if act not in ErasureAct.values:
        raise InvalidArguments(f"{act!r} is none of {', '.join(ErasureAct.values)}.")
    erasure = get(id)
    everywhere = PersonalValue(erasure.value)  # also where a key is given
    text = everywhere.without(reason)

    def begin(db: DjangoDatabase, job: UUID | None) -> bool:
        return erasure_rows.start(db, erasure.id, act=act, reason=text, job=job)

    if not here and erasure.state == WorkState.DRAFT:
        WORK.check_room(erasure.created_by, erasure.id)

    started = WORK.assign(erasure.id, begin, here=here)
    if started:
        WORK.record(f"start {act}", get(id), by, erasure.total or 0)
    return started


@sync_only()
def earlier(value: str) -> list[Erasure]:
    """Earlier erasures of the same value, the newest first."""
    return erasure_rows.earlier(DjangoDatabase(), fingerprints(value))


def fingerprints(value: str) -> Sequence[str]:
    """Keyed hashes of the value: by SECRET_KEY, then by its fallbacks."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    text = value.strip().casefold()
    hashes = (salted_hmac(SALT, text, secret=s, algorithm="sha256") for s in secrets)
    return [one.hexdigest() for one in hashes]
