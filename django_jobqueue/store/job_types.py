"""Job types: declared by the code, overridden and paused by operators."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django_jobqueue.domain import followers, key_limits, unique_keys, weights
from django_jobqueue.domain.job_options import COLUMNS, OVERRIDES
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.unique_rule import UniqueRule
from django_jobqueue.store.connection import Database
from django_jobqueue.store.declaring import Declaring, seconds_of
from django_jobqueue.store.fitting_names import FITS, fitting
from django_jobqueue.store.notify import News
from django_jobqueue.text.json_reading import read_json

# The columns that hold the declaration, and their types.
DECLARED: Final = {
    "handler": "text",
    "description": "text",
    "unique_by": "text",
    "unique_rule": "jsonb",
    "limit_name": "text",
    "limit_rule": "jsonb",
    "weight_rule": "jsonb",
    "followers": "jsonb",
    "follower_arguments": "jsonb",
    **{name: column.sql_type for name, column in COLUMNS.items()},
}

# Overrides and pauses are never touched; nor is a row without a handler.
DECLARING: Final = Declaring("jobqueue_jobtype", DECLARED)
# What an API can say that knows these options alone: others are Python's to give.
OF_PROGRAMS: Final = (
    *("description", "delivery", "max_attempts", "concurrency"),
    *("queue", "priority", "timeout"),
)
DECLARING_IN_PART: Final = Declaring("jobqueue_jobtype", DECLARED, changed=OF_PROGRAMS)
DECLARING_LIMITS: Final = Declaring(
    "jobqueue_keylimit", {"concurrency": "int", "rate": "text", "strict": "boolean"}
)

NEWEST: Final = f"""
SELECT created_at, name FROM jobqueue_jobtype AS type
 WHERE {FITS}
   AND (%(at)s::timestamptz IS NULL OR created_at < %(at)s
        OR created_at = %(at)s AND name > %(name)s)
 ORDER BY created_at DESC, name LIMIT %(limit)s
"""
COUNT_REMOTE: Final = f"""
SELECT count(*)
  FROM (SELECT FROM jobqueue_jobtype AS type
         WHERE handler = '' AND {FITS} LIMIT %(most)s) AS counted
"""

STORED_RULES: Final = """
SELECT unique_rule::text, limit_rule IS NOT NULL FROM jobqueue_jobtype
 WHERE name = %(name)s
"""

STORED_HANDLER: Final = """
SELECT handler FROM jobqueue_jobtype WHERE name = %(name)s
"""

_OVERRIDE_COLUMNS: Final = ", ".join(f"{{0}}.{name}_override" for name in OVERRIDES)
_NEW_OVERRIDES: Final = ",\n         ".join(
    f"""{name}_override = CASE WHEN '{name}' = ANY (%(given)s::text[])
              THEN %({name})s::{one.sql_type}
              ELSE held.{name}_override END"""
    for name, one in OVERRIDES.items()
)

# The row is locked before it is read, so the values before are those that this change
# replaced, and a concurrent change of other columns stands.
OVERRIDE: Final = f"""
WITH held AS MATERIALIZED (
  SELECT type.name, {_OVERRIDE_COLUMNS.format("type")}
    FROM jobqueue_jobtype AS type
   WHERE type.name = %(name)s
     FOR NO KEY UPDATE
), changed AS (
  UPDATE jobqueue_jobtype AS type
     SET {_NEW_OVERRIDES}
    FROM held
   WHERE type.name = held.name
  RETURNING {_OVERRIDE_COLUMNS.format("held")}, {_OVERRIDE_COLUMNS.format("type")})
SELECT changed.*, pg_notify('jobqueue', '{News.JOB_TYPES.prefix}') FROM changed
"""

PAUSE: Final = f"""
WITH changed AS (
  UPDATE jobqueue_jobtype
     SET paused = true, paused_at = clock_timestamp(), paused_by = %(by)s,
         paused_reason = %(reason)s, resume_at = %(resume_at)s
   WHERE name = ANY (%(names)s::text[])
  RETURNING name)
SELECT name, pg_notify('jobqueue', '{News.JOB_TYPES.prefix}') FROM changed
"""

RESUME: Final = f"""
WITH changed AS (
  UPDATE jobqueue_jobtype
     SET paused = false, paused_at = NULL, paused_by = '', paused_reason = '',
         resume_at = NULL
   WHERE name = ANY (%(names)s::text[]) AND paused
  RETURNING name)
SELECT name, pg_notify('jobqueue', '{News.JOB_TYPES.prefix}') FROM changed
"""

PAUSE_QUEUE: Final = f"""
WITH changed AS (
  INSERT INTO jobqueue_queue AS held (
         name, paused, paused_at, paused_by, paused_reason, resume_at)
  SELECT name, true, clock_timestamp(), %(by)s, %(reason)s, %(resume_at)s::timestamptz
    FROM unnest(%(names)s::text[]) AS name
      ON CONFLICT (name) DO UPDATE
     SET paused = true, paused_at = excluded.paused_at, paused_by = excluded.paused_by,
         paused_reason = excluded.paused_reason, resume_at = excluded.resume_at
  RETURNING name)
SELECT name, pg_notify('jobqueue', '{News.JOB_TYPES.prefix}') FROM changed
"""

RESUME_QUEUE: Final = f"""
WITH changed AS (
  UPDATE jobqueue_queue
     SET paused = false, paused_at = NULL, paused_by = '', paused_reason = '',
         resume_at = NULL
   WHERE name = ANY (%(names)s::text[]) AND paused
  RETURNING name)
SELECT name, pg_notify('jobqueue', '{News.JOB_TYPES.prefix}') FROM changed
"""


class Change(NamedTuple):
    """The value of an override before a change and after; None is no override."""

    before: Any
    after: Any


CLOCK_TIME: Final = "SELECT clock_timestamp()"


def declare(
    db: Database, declarations: Iterable[Declaration], *, waits: bool = True
) -> None:
    """Write these declarations to the rows of their job types; unless ``waits``,
    without the rows that others have locked."""
    declared = list(declarations)
    rows = [_row(declaration) for declaration in declared]
    # First, since job types that name one without a row would be unlimited.
    if limits := key_limits.declared(declared):
        DECLARING_LIMITS.write(db, json.dumps(limits), waits=waits)
    if rows:
        DECLARING.write(db, json.dumps(rows), waits=waits)


def declare_in_part(db: Database, declaration: Declaration) -> None:
    """Write this declaration of a program; of a row that is there only what programs
    can say."""
    DECLARING_IN_PART.write(db, json.dumps([_row(declaration)]))


def newest(
    db: Database,
    patterns: Sequence[str],
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[tuple[datetime, str]]:
    """The moment and the name of up to so many job types that fit the patterns, the
    newest first, ``after`` such a pair."""
    at, name = after or (None, "")
    params = {**fitting(patterns), "limit": limit, "at": at, "name": name}
    return [(at, name) for at, name in db.fetch(NEWEST, params)]


def count_remote(db: Database, patterns: Sequence[str], most: int) -> int:
    """How many job types without a handler fit the patterns; counts up to ``most``."""
    return int(db.fetch(COUNT_REMOTE, {**fitting(patterns), "most": most})[0][0])


def stored_rules(db: Database, name: str) -> tuple[UniqueRule | None, bool]:
    """The rule by which jobs of this type are unique, from its row, and whether it has
    a limit by key; None and False if there is no such row."""
    rows = db.fetch(STORED_RULES, {"name": name})
    if not rows:
        return None, False
    rule, is_keyed = rows[0]
    return None if rule is None else UniqueRule.from_json(read_json(rule)), is_keyed


def stored_handler(db: Database, name: str) -> str | None:
    """The path of the handler of this job type, empty if no code has one; None if
    there is no such job type."""
    rows = db.fetch(STORED_HANDLER, {"name": name})
    return rows[0][0] if rows else None


def override(
    db: Database, name: str, given: Mapping[str, Any]
) -> dict[str, Change] | None:
    """Write these overrides of one job type, and leave the others as they are.

    Returns those that had another value before; None if there is no such job type.
    """
    values = {**dict.fromkeys(OVERRIDES), **given}
    rows = db.fetch(OVERRIDE, {"name": name, "given": list(given), **values})
    if not rows:
        return None
    count = len(OVERRIDES)
    before, after = rows[0][:count], rows[0][count : 2 * count]
    return {
        name: Change(was, now)
        for name, was, now in zip(OVERRIDES, before, after, strict=True)
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
    """Pause the claiming of these job types, or queues; return those that exist,
    in this order."""
    rows = db.fetch(
        PAUSE_QUEUE if queues else PAUSE,
        {"names": list(names), "by": by, "reason": reason, "resume_at": resume_at},
    )
    return _in_order(names, rows)


def resume(db: Database, names: Sequence[str], *, queues: bool = False) -> list[str]:
    """Resume the claiming of these job types, or queues; return those whose row had a
    pause, even one that was over."""
    rows = db.fetch(RESUME_QUEUE if queues else RESUME, {"names": list(names)})
    return _in_order(names, rows)


def _in_order(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[str]:
    changed = {row[0] for row in rows}
    return [name for name in dict.fromkeys(names) if name in changed]


def _row(declaration: Declaration) -> dict[str, Any]:
    policy, rule = declaration.policy, unique_keys.rule_of(declaration)
    options = {
        name: column.value(policy) if column.value else getattr(policy, name)
        for name, column in COLUMNS.items()
    }
    return {
        "name": declaration.name,
        # Without a handler it is done by remote workers.
        "handler": "" if declaration.is_remote else declaration.path[:300],
        "description": declaration.description,
        "unique_by": unique_keys.described(policy.unique)[:300],
        "unique_rule": None if rule is None else read_json(rule.json),
        "limit_name": key_limits.limit_name(declaration),
        "limit_rule": read_json(key_limits.rule_json(declaration) or "null"),
        "weight_rule": read_json(weights.rule_json(declaration) or "null"),
        "followers": followers.as_json(followers.followers_of(policy)),
        "follower_arguments": followers.arguments_of(declaration.parameters),
        **{name: _as_json(value) for name, value in options.items()},
    }


def _as_json(value: Any) -> Any:
    return seconds_of(value) if isinstance(value, timedelta) else value


def clock_time(db: Database) -> datetime:
    """The time by the database's clock, or by the clock that a test has put in its
    place."""
    moment: datetime = db.fetch(CLOCK_TIME)[0][0]
    return moment
