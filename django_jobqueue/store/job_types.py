"""Job types: declared by the code, overridden and paused by operators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django_jobqueue.domain import unique_keys
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.unique_keys import UniqueRule
from django_jobqueue.retries import describe
from django_jobqueue.store.connection import Database
from django_jobqueue.store.rows import Overrides

# What the code says of a job type, and how its JSON is read.
DECLARED: Final = {
    "handler": "text",
    "description": "text",
    "queue": "text",
    "priority": "smallint",
    "max_attempts": "integer",
    "backoff": "text",
    "timeout": "float8",  # seconds
    "delivery": "text",
    "concurrency": "integer",
    "atomic": "boolean",
    "expires_in": "float8",  # seconds
    "max_crashes": "integer",
    "sensitive": "jsonb",
    "unique_by": "text",
    "unique_rule": "jsonb",
    "on_complete": "text",
}
_VALUES: Final = ", ".join(
    f"{column} * interval '1 second'" if kind == "float8" else column
    for column, kind in DECLARED.items()
)
_COLUMNS: Final = ", ".join(DECLARED)
_TYPED: Final = ", ".join(f"{column} {kind}" for column, kind in DECLARED.items())
_SET: Final = ", ".join(f"{column} = excluded.{column}" for column in DECLARED)
_HELD: Final = ", ".join(f"held.{column}" for column in DECLARED)
_EXCLUDED: Final = ", ".join(f"excluded.{column}" for column in DECLARED)

# Written only where something differs, so that a start of a hundred workers writes
# nothing. Overrides and pauses are never touched; nor is a row without a handler.
DECLARE: Final = f"""
INSERT INTO jobqueue_jobtype AS held (name, {_COLUMNS})
SELECT name, {_VALUES}
  FROM jsonb_to_recordset(%(declared)s::jsonb) AS declared (name text, {_TYPED})
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
   SET {_SET},
       declared_at = clock_timestamp()
 WHERE ({_HELD})
       IS DISTINCT FROM
       ({_EXCLUDED})
"""

OVERRIDES: Final = """
SELECT name, priority_override, max_attempts_override, timeout_override,
       CASE concurrency_override WHEN -1 THEN NULL
            ELSE coalesce(concurrency_override, concurrency) END
  FROM jobqueue_jobtype
"""

UNIQUE_RULE: Final = (
    "SELECT unique_rule::text FROM jobqueue_jobtype WHERE name = %(name)s"
)

# What can be overridden, and the type of its column.
OVERRIDABLE: Final = {
    "priority": "smallint",
    "max_attempts": "integer",
    "timeout": "interval",
    "concurrency": "integer",
    "keep_succeeded": "interval",
    "keep_unsuccessful": "interval",
}
_OVERRIDES: Final = ", ".join(f"{{0}}.{name}_override" for name in OVERRIDABLE)
_SAID: Final = ",\n         ".join(
    f"""{name}_override = CASE WHEN '{name}' = ANY (%(said)s::text[])
              THEN %({name})s::{kind} ELSE held.{name}_override END"""
    for name, kind in OVERRIDABLE.items()
)

# The row is locked before it is read, so what it was before is what this change ended,
# and whatever others said of other columns stands.
OVERRIDE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT type.name, {_OVERRIDES.format("type")}
    FROM jobqueue_jobtype AS type
   WHERE type.name = %(name)s
     FOR NO KEY UPDATE
), changed AS (
  UPDATE jobqueue_jobtype AS type
     SET {_SAID}
    FROM held
   WHERE type.name = held.name
  RETURNING {_OVERRIDES.format("held")}, {_OVERRIDES.format("type")})
SELECT changed.*, pg_notify('jobqueue', 't:') FROM changed
"""

PAUSE: Final = """
WITH changed AS (
  UPDATE jobqueue_jobtype
     SET paused = true, paused_at = clock_timestamp(), paused_by = %(by)s,
         paused_reason = %(reason)s, resume_at = %(resume_at)s
   WHERE name = ANY (%(names)s::text[])
  RETURNING name)
SELECT name, pg_notify('jobqueue', 't:') FROM changed
"""

RESUME: Final = """
WITH changed AS (
  UPDATE jobqueue_jobtype
     SET paused = false, paused_at = NULL, paused_by = '', paused_reason = '',
         resume_at = NULL
   WHERE name = ANY (%(names)s::text[])
  RETURNING name)
SELECT name, pg_notify('jobqueue', 't:') FROM changed
"""

PAUSE_QUEUE: Final = """
WITH changed AS (
  INSERT INTO jobqueue_queue AS held (
         name, paused, paused_at, paused_by, paused_reason, resume_at)
  SELECT name, true, clock_timestamp(), %(by)s, %(reason)s, %(resume_at)s::timestamptz
    FROM unnest(%(names)s::text[]) AS name
      ON CONFLICT (name) DO UPDATE
     SET paused = true, paused_at = excluded.paused_at, paused_by = excluded.paused_by,
         paused_reason = excluded.paused_reason, resume_at = excluded.resume_at
  RETURNING name)
SELECT name, pg_notify('jobqueue', 't:') FROM changed
"""

RESUME_QUEUE: Final = """
WITH changed AS (
  UPDATE jobqueue_queue
     SET paused = false, paused_at = NULL, paused_by = '', paused_reason = '',
         resume_at = NULL
   WHERE name = ANY (%(names)s::text[])
  RETURNING name)
SELECT name, pg_notify('jobqueue', 't:') FROM changed
"""


@dataclass(frozen=True, slots=True)
class Change:
    """The override before and after a change; None is not set."""

    before: Any
    after: Any


CLOCK_TIME: Final = "SELECT clock_timestamp()"


def declare(db: Database, declarations: Iterable[Declaration]) -> None:
    """Write what the code says of these job types."""
    rows = [_row(declaration) for declaration in declarations]
    if rows:
        db.run(DECLARE, {"declared": json.dumps(rows)})


def overrides(db: Database) -> dict[str, Overrides]:
    """What operators say of each job type, and its concurrency in force."""
    return {name: Overrides(*rest) for name, *rest in db.fetch(OVERRIDES)}


def unique_rule(db: Database, name: str) -> UniqueRule | None:
    """By what the jobs of this type are unique, as its row says; None if by nothing, or
    if there is no such row."""
    rows = db.fetch(UNIQUE_RULE, {"name": name})
    if not rows or rows[0][0] is None:
        return None
    return UniqueRule.from_json(json.loads(rows[0][0]))


def override(
    db: Database, name: str, said: Mapping[str, Any]
) -> dict[str, Change] | None:
    """Write these overrides of one job type, and leave the others as they are.

    Returns those that were something else before; None if there is no such job type.
    """
    values = {**dict.fromkeys(OVERRIDABLE), **said}
    rows = db.fetch(OVERRIDE, {"name": name, "said": list(said), **values})
    if not rows:
        return None
    count = len(OVERRIDABLE)
    before, after = rows[0][:count], rows[0][count : 2 * count]
    return {
        name: Change(was, now)
        for name, was, now in zip(OVERRIDABLE, before, after, strict=True)
        if was != now
    }


def pause(
    db: Database,
    names: Sequence[str],
    *,
    queues: bool = False,
    by: str = "",
    reason: str = "",
    resume_at: datetime | None = None,
) -> list[str]:
    """Stop the claiming of these job types, or queues; return those that exist."""
    rows = db.fetch(
        PAUSE_QUEUE if queues else PAUSE,
        {"names": list(names), "by": by, "reason": reason, "resume_at": resume_at},
    )
    return [row[0] for row in rows]


def resume(db: Database, names: Sequence[str], *, queues: bool = False) -> list[str]:
    """Let these job types, or queues, be claimed again; return those that exist."""
    rows = db.fetch(RESUME_QUEUE if queues else RESUME, {"names": list(names)})
    return [row[0] for row in rows]


def _row(declaration: Declaration) -> dict[str, Any]:
    policy, rule = declaration.policy, unique_keys.rule_of(declaration)
    timeout, expires_in = policy.time_allowed, policy.expires_in
    return {
        "name": declaration.name,
        "handler": declaration.path[:300],
        "description": declaration.description,
        "queue": policy.queue,
        "priority": policy.priority,
        "max_attempts": policy.attempts_allowed,
        "backoff": describe(policy.backoff)[:200],
        "timeout": timeout and timeout.total_seconds(),
        "delivery": policy.delivery.value,
        "concurrency": policy.concurrency,
        "atomic": policy.atomic,
        "expires_in": expires_in and expires_in.total_seconds(),
        "max_crashes": policy.crashes_allowed,
        "sensitive": sorted(policy.sensitive),
        "unique_by": unique_keys.described(policy.unique)[:300],
        "unique_rule": None if rule is None else json.loads(rule.json),
        "on_complete": policy.on_complete or "",
    }


def clock_time(db: Database) -> datetime:
    """The time by the database's clock, or by the one that a test put before it."""
    moment: datetime = db.fetch(CLOCK_TIME)[0][0]
    return moment
