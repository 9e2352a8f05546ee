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
SELECT concurrency FROM jobqueue_keyoverride WHERE limit_key = %(limit_key)s
"""

OVERRIDE_KEY: Final = """
INSERT INTO jobqueue_keyoverride (limit_key, concurrency)
VALUES (%(limit_key)s, %(concurrency)s)
    ON CONFLICT (limit_key) DO UPDATE SET concurrency = excluded.concurrency
"""

CLEAR_KEY: Final = """
DELETE FROM jobqueue_keyoverride WHERE limit_key = %(limit_key)s
"""

NAMES: Final = "SELECT name FROM jobqueue_keylimit ORDER BY name"


def override_limit(
    db: DjangoDatabase, name: str, key: str | None, concurrency: int | None
) -> Change | None:
    """Write the number of all keys of this limit, or of this one; None lets the code
    decide, or the limit. Returns the values before and after; None if there is no such
    limit."""
    params: dict[str, Any] = {
        "name": name,
        "limit_key": f"{name} {key}",
        "concurrency": concurrency,
    }

    def write() -> Change | None:
        locked = db.fetch(LOCK, params)
        if not locked:
            return None
        if key is None:
            before = locked[0][0]
            statement = OVERRIDE_LIMIT
        else:
            rows = db.fetch(KEY_BEFORE, params)
            before = rows[0][0] if rows else None
            statement = CLEAR_KEY if concurrency is None else OVERRIDE_KEY
        if before != concurrency:
            db.run(statement, params)
        return Change(before, concurrency)

    return db.in_transaction(write)


def override_rate(db: DjangoDatabase, name: str, rate: str | None) -> Change | None:
    """Write the rate of each key of this limit; None lets the code decide. Returns the
    values before and after; None if there is no such limit."""
    params = {"name": name, "rate": rate}

    def write() -> Change | None:
        locked = db.fetch(LOCK_RATE, params)
        if not locked:
            return None
        if locked[0][0] != rate:
            db.run(OVERRIDE_RATE, params)
        return Change(locked[0][0], rate)

    return db.in_transaction(write)


def limit_names(db: DjangoDatabase) -> list[str]:
    """The names of all limits by key."""
    return [name for (name,) in db.fetch(NAMES)]
