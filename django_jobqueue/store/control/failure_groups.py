"""Stores the decisions of people about failure groups.

Each statement changes only what was decided, so that a group that regresses at the same
moment loses nothing; rows are locked in key order.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.connection import Database

NOTES_LENGTH: Final = 20_000  # characters; the oldest go

_CHANGE: Final = """
UPDATE jobqueue_failuregroup AS held
   SET {change}, changed_at = clock_timestamp(), changed_by = %(by)s
 WHERE held.fingerprint = ANY (ARRAY(
         SELECT chosen.fingerprint
           FROM jobqueue_failuregroup AS chosen
          WHERE chosen.fingerprint = ANY (%(fingerprints)s::uuid[])
          ORDER BY chosen.fingerprint
            FOR UPDATE))
   AND {condition}
RETURNING held.fingerprint
"""
# What an operator has not seen is not decided about.
_SEEN: Final = (
    "(%(seen)s::timestamptz IS NULL OR held.regressed_at IS NULL"
    " OR held.regressed_at <= %(seen)s::timestamptz)"
)
_EXCUSED: Final = """(
         SELECT coalesce(jsonb_agg(DISTINCT worker.release), '[]')
           FROM jobqueue_worker AS worker
          WHERE worker.state IN ('running', 'draining')
            AND worker.release NOT IN ('', %(release)s::text)
            AND %(release)s::text <> '')"""

RESOLVE: Final = _CHANGE.format(
    change=f"""state = 'resolved', resolved_at = clock_timestamp(),
       resolved_in = %(release)s::text, excused = {_EXCUSED},
       regressed_at = NULL, ignored_until = NULL""",
    condition=_SEEN,
)
IGNORE: Final = _CHANGE.format(
    change="state = 'ignored', ignored_until = %(until)s::timestamptz", condition=_SEEN
)
REOPEN: Final = _CHANGE.format(
    change="""state = 'open', resolved_at = NULL, resolved_in = '', excused = '[]',
       ignored_until = NULL""",
    condition="held.state <> 'open'",
)
ASSIGN: Final = _CHANGE.format(
    change="assignee = %(assignee)s::text",
    condition="held.assignee <> %(assignee)s::text",
)
NOTE: Final = _CHANGE.format(
    change=r"""notes = left(
         to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')
         || ' ' || %(by)s::text || E'\n' || %(text)s::text
         || CASE WHEN held.notes = '' THEN '' ELSE E'\n\n' || held.notes END,
         %(most)s)""",
    condition="true",
)


def resolve(
    db: Database,
    fingerprints: Sequence[UUID],
    *,
    release: str,
    seen: datetime | None,
    by: str,
) -> list[UUID]:
    """Resolved; with a release, failures of the other ones that run now are excused."""
    return _change(db, RESOLVE, fingerprints, by, release=release, seen=seen)


def ignore(
    db: Database,
    fingerprints: Sequence[UUID],
    *,
    until: datetime | None,
    seen: datetime | None,
    by: str,
) -> list[UUID]:
    """Ignored, until a moment or for good."""
    return _change(db, IGNORE, fingerprints, by, until=until, seen=seen)


def reopen(db: Database, fingerprints: Sequence[UUID], *, by: str) -> list[UUID]:
    """Open again."""
    return _change(db, REOPEN, fingerprints, by)


def assign(
    db: Database, fingerprints: Sequence[UUID], *, assignee: str, by: str
) -> list[UUID]:
    """Somebody's; an empty name is nobody's."""
    return _change(db, ASSIGN, fingerprints, by, assignee=assignee)


def note(
    db: Database, fingerprints: Sequence[UUID], *, text: str, by: str
) -> list[UUID]:
    """Written above the older notes, with the time and the name."""
    return _change(db, NOTE, fingerprints, by, text=text, most=NOTES_LENGTH)


def _change(
    db: Database, statement: str, fingerprints: Sequence[UUID], by: str, **values: Any
) -> list[UUID]:
    params = {"fingerprints": list(fingerprints), "by": by, **values}
    return [fingerprint for (fingerprint,) in db.fetch(statement, params)]
