"""The audit: what operators did, row by row."""

from __future__ import annotations

from typing import Any, Final

from django_jobqueue.store.connection import Database

BATCH: Final = 1_000

ADD: Final = """
INSERT INTO jobqueue_auditentry (verb, by, count, about, details)
VALUES (%(verb)s, %(by)s, %(count)s, %(about)s::jsonb, %(details)s::jsonb)
"""

DROP: Final = """
WITH old AS (
  SELECT id FROM jobqueue_auditentry
   WHERE at < clock_timestamp() - %(keep)s * interval '1 second'
   ORDER BY at
   LIMIT %(batch)s
)
DELETE FROM jobqueue_auditentry AS entry USING old WHERE entry.id = old.id
RETURNING entry.id
"""


def add(db: Database, **columns: Any) -> None:
    """Keep an act."""
    db.run(ADD, columns)


def drop(db: Database, keep: float) -> int:
    """Delete a batch of the entries that are older than so many seconds; return how
    many."""
    return len(db.fetch(DROP, {"keep": keep, "batch": BATCH}))
