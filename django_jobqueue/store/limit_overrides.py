"""Override limits by key: the number of all keys, or that of one."""

from __future__ import annotations

from typing import Any, Final

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.job_types import Change

# Claims lock this row as well, so after the commit none goes by the number before. The
# triggers of the tables notify the workers.
LOCK: Final = """
SELECT concurrency_override FROM jobqueue_keylimit WHERE name = %(name)s
   FOR NO KEY UPDATE
"""

OVERRIDE_LIMIT: Final = """
UPDATE jobqueue_keylimit SET concurrency_override = %(concurrency)s::integer
 WHERE name = %(name)s
"""

LOCK_RATE: Final = """
SELECT rate_override FROM jobqueue_keylimit WHERE name = %(name)s FOR NO KEY UPDATE
"""

OVERRIDE_RATE: Final = """
UPDATE jobqueue_keylimit SET rate_override = %(rate)s::text WHERE name = %(name)s
"""

KEY_BEFORE: Final = """
SELECT concurrency, rate, share FROM jobqueue_keyoverride
 WHERE limit_key = %(limit_key)s
"""
OF_KEYS: Final = ("concurrency", "rate", "share")

OVERRIDE_KEY: Final = """
INSERT INTO jobqueue_keyoverride (limit_key, concurrency, rate, share)
VALUES (%(limit_key)s, %(concurrency)s, %(rate)s, %(share)s)
    ON CONFLICT (limit_key) DO UPDATE
   SET concurrency = excluded.concurrency, rate = excluded.rate, share = excluded.share
"""

CLEAR_KEY: Final = """
DELETE FROM jobqueue_keyoverride WHERE limit_key = %(limit_key)s
"""

STRICT: Final = "SELECT FROM jobqueue_keylimit WHERE name = %(name)s AND strict"
NAMES: Final = "SELECT name FROM jobqueue_keylimit ORDER BY name"


def override_limit(
    db: DjangoDatabase, name: str, concurrency: int | None
) -> Change | None:
    """Write how many jobs of each key of this limit run at once; None lets the code
    decide. Returns the values before and after; None if there is no such limit."""
    params = {"name": name, "concurrency": concurrency}
    return _write(db, LOCK, OVERRIDE_LIMIT, params, concurrency)


def override_rate(db: DjangoDatabase, name: str, rate: str | None) -> Change | None:
    """The same for the rate of each key."""
    params = {"name": name, "rate": rate}
    return _write(db, LOCK_RATE, OVERRIDE_RATE, params, rate)


def override_key(
    db: DjangoDatabase, name: str, key: str, column: str, value: Any
) -> Change | None:
    """Write one of OF_KEYS for this key of the limit; None lets the limit decide.
    Returns the values before and after; None if there is no such limit."""
    params: dict[str, Any] = {"name": name, "limit_key": f"{name} {key}"}

    def write() -> Change | None:
        if not db.fetch(LOCK, params):
            return None
        rows = db.fetch(KEY_BEFORE, params) or [(None,) * len(OF_KEYS)]
        values = dict(zip(OF_KEYS, rows[0], strict=True))
        before = values[column]
        if before != value:
            values[column] = value
            has_some = any(one is not None for one in values.values())
            db.run(OVERRIDE_KEY if has_some else CLEAR_KEY, {**params, **values})
        return Change(before, value)

    return db.in_transaction(write)


def _write(
    db: DjangoDatabase, lock: str, statement: str, params: dict[str, Any], value: Any
) -> Change | None:
    def write() -> Change | None:
        locked = db.fetch(lock, params)
        if not locked:
            return None
        before = locked[0][0]
        if before != value:
            db.run(statement, params)
        return Change(before, value)

    return db.in_transaction(write)


def is_strict(db: DjangoDatabase, name: str) -> bool:
    """True if there is such a limit, whose order is strict."""
    return bool(db.fetch(STRICT, {"name": name}))


def limit_names(db: DjangoDatabase) -> list[str]:
    """The names of all limits by key."""
    return [name for (name,) in db.fetch(NAMES)]
