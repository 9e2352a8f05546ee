"""Drafts, starts and stores erasures. Whatever ends one clears its value in the same
statement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.contrib.privacy.personal_value import PersonalValue
from django_jobqueue.store.connection import Database
from django_jobqueue.store.work_rows import WorkTable

DRAFT: Final = """
INSERT INTO jobqueue_privacy_erasure (value, key, fingerprint, created_by)
VALUES (%(value)s, %(key)s, %(fingerprint)s, %(by)s)
RETURNING id
"""
START: Final = """
UPDATE jobqueue_privacy_erasure
   SET state = 'queued', act = %(act)s, reason = %(reason)s, job_id = %(job)s,
       position = NULL
 WHERE id = %(id)s AND state = 'draft' AND total IS NOT NULL
RETURNING id
"""
# A value is kept no longer than somebody may still need it.
FORGET: Final = """
WITH drafts AS (
  DELETE FROM jobqueue_privacy_erasure
   WHERE state = 'draft' AND created_at < clock_timestamp() - interval '1 day'
)
UPDATE jobqueue_privacy_erasure
   SET state = 'stopped', value = ''
 WHERE state = 'failed' AND finished_at < clock_timestamp() - interval '7 days'
"""


class Position(NamedTuple):
    """The place of a pass: a table, and the last row of it that was examined."""

    source: int = 0
    cursor: Sequence[str] | None = None
    hits: int = 0  # rows of this pass that held the value
    running: int = 0  # of these, running jobs
    refused: int = 0  # and those that the database refused to change

    @classmethod
    def from_json(cls, value: Sequence[Any] | None) -> Position:
        """Read what was stored; None is the beginning."""
        return cls(*value) if value else cls()

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(list(self))


class Erasure(NamedTuple):
    """An erasure as it was when it was read."""

    id: UUID
    act: str  # of states.ErasureAct; empty in a draft
    state: str  # of states.WorkState
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
    created_at: datetime
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


ERASURES: Final = WorkTable(
    "jobqueue_privacy_erasure",
    Erasure,
    json={
        "counted": dict,
        "changed": dict,
        "remaining": dict,
        "position": Position.from_json,
    },
    progress=("changed", "remaining", "passes", "position"),
    counts=("counted", "examined", "total", "position"),
    forgets="value",
)
EARLIER: Final = f"""
SELECT {ERASURES.columns} FROM jobqueue_privacy_erasure
 WHERE fingerprint = ANY (%(fingerprints)s) AND act <> '' AND state <> 'draft'
 ORDER BY created_at DESC
 LIMIT 10
"""


def draft(db: Database, *, value: str, key: str, fingerprint: str, by: str) -> UUID:
    """Insert a draft, of which nothing is counted."""
    params = {"value": value, "key": key, "fingerprint": fingerprint, "by": by}
    id: UUID = db.fetch(DRAFT, params)[0][0]
    return id


def earlier(db: Database, fingerprints: Sequence[str]) -> list[Erasure]:
    """The newest that were started for one of these fingerprints."""
    rows = db.fetch(EARLIER, {"fingerprints": list(fingerprints)})
    return [ERASURES.row(row) for row in rows]


def start(db: Database, id: UUID, *, act: str, reason: str, job: UUID | None) -> bool:
    """Draft → queued; False if it is no draft (any more), or is not counted."""
    params = {"id": id, "act": act, "reason": reason, "job": job}
    return bool(db.fetch(START, params))


def forget(db: Database) -> None:
    """Clear the values that nobody came back for: of drafts after a day, and of what
    failed after a week."""
    db.run(FORGET)
