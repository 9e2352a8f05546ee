"""Drafts and reads erasures, and moves them from state to state.

Whatever ends one clears its value in the same statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.personal_value import PersonalValue
from django_jobqueue.store.connection import Database
from django_jobqueue.text.json_reading import read_json

ACTIVE: Final = ("queued", "running")
OPEN: Final = (*ACTIVE, "failed")

DRAFT: Final = """
INSERT INTO jobqueue_erasure (value, key, fingerprint, created_by)
VALUES (%(value)s, %(key)s, %(fingerprint)s, %(by)s)
RETURNING id
"""
_READ: Final = """
SELECT id, act, state, value, key, fingerprint, reason, counted::text, total, examined,
       changed::text, remaining::text, passes, position::text, created_by, finished_at,
       job_id
  FROM jobqueue_erasure
"""
READ: Final = f"{_READ} WHERE id = %(id)s"
LOCK: Final = f"{_READ} WHERE id = %(id)s FOR UPDATE"
EARLIER: Final = f"""{_READ}
 WHERE fingerprint = ANY (%(fingerprints)s) AND act <> '' AND state <> 'draft'
 ORDER BY created_at DESC
 LIMIT 10
"""
START: Final = """
UPDATE jobqueue_erasure
   SET state = 'queued', act = %(act)s, reason = %(reason)s, job_id = %(job)s,
       position = NULL
 WHERE id = %(id)s AND state = 'draft' AND total IS NOT NULL
RETURNING id
"""
RESUME: Final = """
UPDATE jobqueue_erasure
   SET state = 'queued', job_id = %(job)s, error = '', finished_at = NULL
 WHERE id = %(id)s AND state = ANY (%(states)s)
RETURNING id
"""
STOP: Final = """
UPDATE jobqueue_erasure
   SET state = 'stopped', value = '', finished_at = clock_timestamp()
 WHERE id = %(id)s AND state = ANY (%(states)s)
RETURNING id
"""
FAIL: Final = """
UPDATE jobqueue_erasure
   SET state = 'failed', error = %(error)s, finished_at = clock_timestamp()
 WHERE id = %(id)s AND state = ANY (%(states)s)
"""
HAND_OVER: Final = """
UPDATE jobqueue_erasure
   SET job_id = %(to)s
 WHERE id = %(id)s AND job_id IS NOT DISTINCT FROM %(job)s
   AND state IN ('draft', 'queued', 'running')
RETURNING id
"""
SET_COUNTED: Final = """
UPDATE jobqueue_erasure
   SET counted = %(counted)s::jsonb, examined = examined + %(examined)s,
       total = %(total)s, position = %(position)s::jsonb
 WHERE id = %(id)s
"""
PROGRESS: Final = """
UPDATE jobqueue_erasure
   SET state = CASE WHEN %(over)s THEN 'done' ELSE 'running' END,
       value = CASE WHEN %(over)s THEN '' ELSE value END,
       finished_at = CASE WHEN %(over)s THEN clock_timestamp() END,
       started_at = coalesce(started_at, clock_timestamp()),
       progress_at = clock_timestamp(),
       changed = %(changed)s::jsonb, remaining = %(remaining)s::jsonb,
       passes = %(passes)s, position = %(position)s::jsonb
 WHERE id = %(id)s
"""
DISCARD: Final = """
DELETE FROM jobqueue_erasure WHERE id = %(id)s AND state = 'draft'
RETURNING id
"""
# A value is kept no longer than somebody may still need it.
FORGET: Final = """
WITH drafts AS (
  DELETE FROM jobqueue_erasure
   WHERE state = 'draft' AND created_at < clock_timestamp() - interval '1 day'
)
UPDATE jobqueue_erasure
   SET state = 'stopped', value = ''
 WHERE state = 'failed' AND finished_at < clock_timestamp() - interval '7 days'
"""


class Position(NamedTuple):
    """The place of a pass: a table, and the last row of it that was examined."""

    source: int = 0
    cursor: Sequence[str] | None = None
    hits: int = 0  # rows of this pass that held the value
    running: int = 0  # of these, running jobs

    @classmethod
    def from_json(cls, text: str | None) -> Position:
        """Read what was stored; None is the beginning."""
        return cls(*read_json(text)) if text else cls()

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps([self.source, self.cursor, self.hits, self.running])


class Erasure(NamedTuple):
    """An erasure as it was when it was read."""

    id: UUID
    act: str  # of states.ErasureAct; empty in a draft
    state: str  # of states.BulkState
    value: str  # empty once it has ended
    key: str
    fingerprint: str
    reason: str
    counted: Mapping[str, Any]  # by table: how many rows, and the first of them
    total: int | None  # None: not all counted
    examined: int
    changed: Mapping[str, int]  # by table
    remaining: Mapping[str, int]  # by reason
    passes: int
    position: Position
    created_by: str
    finished_at: datetime | None
    job_id: UUID | None

    @property
    def personal(self) -> PersonalValue:
        """The value, with what it means."""
        return PersonalValue(self.value, self.key)

    @property
    def rows(self) -> dict[str, int]:
        """The numbers of counted rows, by table."""
        return {name: one["rows"] for name, one in self.counted.items()}

    @property
    def all_changed(self) -> int:
        """The number of rows that were changed or deleted."""
        return sum(self.changed.values())


def draft(db: Database, *, value: str, key: str, fingerprint: str, by: str) -> UUID:
    """Insert a draft, of which nothing is counted."""
    params = {"value": value, "key": key, "fingerprint": fingerprint, "by": by}
    id: UUID = db.fetch(DRAFT, params)[0][0]
    return id


def read(db: Database, id: UUID) -> Erasure | None:
    """The erasure with this id; None if there is none."""
    return next(map(_erasure, db.fetch(READ, {"id": id})), None)


def lock(db: Database, id: UUID) -> Erasure | None:
    """Read it, and lock it until the end of this transaction."""
    return next(map(_erasure, db.fetch(LOCK, {"id": id})), None)


def earlier(db: Database, fingerprints: Sequence[str]) -> list[Erasure]:
    """The newest that were started for one of these fingerprints."""
    rows = db.fetch(EARLIER, {"fingerprints": list(fingerprints)})
    return [_erasure(row) for row in rows]


def start(db: Database, id: UUID, *, act: str, reason: str, job: UUID | None) -> bool:
    """Draft → queued; False if it is no draft (any more), or is not counted."""
    params = {"id": id, "act": act, "reason": reason, "job": job}
    return bool(db.fetch(START, params))


def resume(db: Database, id: UUID, states: Sequence[str], job: UUID) -> bool:
    """One of these states → queued."""
    return bool(db.fetch(RESUME, {"id": id, "states": list(states), "job": job}))


def stop(db: Database, id: UUID) -> bool:
    """End it before its end."""
    return bool(db.fetch(STOP, {"id": id, "states": list(OPEN)}))


def fail(db: Database, id: UUID, error: str) -> None:
    """It cannot go on, until somebody resumes it."""
    db.run(FAIL, {"id": id, "states": list(ACTIVE), "error": error})


def hand_over(db: Database, id: UUID, *, job: UUID | None, to: UUID) -> bool:
    """Another job works it off from now on; False if this one does not."""
    return bool(db.fetch(HAND_OVER, {"id": id, "job": job, "to": to}))


def set_counted(
    db: Database,
    erasure: Erasure,
    *,
    counted: Mapping[str, Any],
    examined: int,
    position: Position,
    over: bool,
) -> None:
    """Write down what was counted, and how far."""
    total = sum(one["rows"] for one in counted.values()) if over else None
    params = {
        "id": erasure.id,
        "counted": json.dumps(counted),
        "examined": examined,
        "total": total,
        "position": position.to_json(),
    }
    db.run(SET_COUNTED, params)


def progress(
    db: Database,
    erasure: Erasure,
    *,
    changed: Mapping[str, int],
    remaining: Mapping[str, int],
    passes: int,
    position: Position,
    over: bool,
) -> None:
    """Write down what a chunk did, and that it was the last one if ``over``."""
    params = {
        "id": erasure.id,
        "changed": json.dumps(changed),
        "remaining": json.dumps(remaining),
        "passes": passes,
        "position": position.to_json(),
        "over": over,
    }
    db.run(PROGRESS, params)


def discard(db: Database, id: UUID) -> bool:
    """Delete a draft; what has started stays."""
    return bool(db.fetch(DISCARD, {"id": id}))


def forget(db: Database) -> None:
    """Clear the values that nobody came back for: of drafts after a day, and of what
    failed after a week."""
    db.run(FORGET)


def _erasure(row: tuple[Any, ...]) -> Erasure:
    (id, act, state, value, key, fingerprint, reason, counted, total, *remainder) = row
    examined, changed, remaining, passes, position, *remainder = remainder
    created_by, finished_at, job_id = remainder
    return Erasure(
        id=id,
        act=act,
        state=state,
        value=value,
        key=key,
        fingerprint=fingerprint,
        reason=reason,
        counted=read_json(counted),
        total=total,
        examined=examined,
        changed=read_json(changed),
        remaining=read_json(remaining),
        passes=passes,
        position=Position.from_json(position),
        created_by=created_by,
        finished_at=finished_at,
        job_id=job_id,
    )
