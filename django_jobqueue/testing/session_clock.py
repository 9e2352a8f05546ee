"""A clock that a test moves: functions of one session that stand before PostgreSQL's.

Our statements, and Django's ``Now()``, name the functions of time without a schema, so
a session whose ``search_path`` has others before ``pg_catalog`` sees another time.
Column defaults are bound to PostgreSQL's own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django_jobqueue.store.connection import Database

SCHEMA: Final = "frozen_clock"
SETTING: Final = "frozen_clock.now"
FUNCTIONS: Final = {
    "clock_timestamp": "VOLATILE",
    "statement_timestamp": "STABLE",
    "transaction_timestamp": "STABLE",
    "now": "STABLE",
}

MAKE_SCHEMA: Final = f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"
# One line of SQL, which the planner puts in place of the call: indexes are used as with
# the functions that these stand before.
MAKE_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {SCHEMA}.{{name}}() RETURNS pg_catalog.timestamptz
LANGUAGE sql {{volatility}} PARALLEL SAFE AS
$$ SELECT pg_catalog.current_setting('{SETTING}')::pg_catalog.timestamptz $$
"""
DROP_SCHEMA: Final = f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"
NOW: Final = "SELECT pg_catalog.clock_timestamp()"
SET_CLOCK: Final = f"SELECT pg_catalog.set_config('{SETTING}', %(now)s, false)"
PATH: Final = "SELECT pg_catalog.current_setting('search_path')"
SET_PATH: Final = "SELECT pg_catalog.set_config('search_path', %(path)s, false)"


def now(db: Database) -> datetime:
    """The time that PostgreSQL itself has, whichever clock stands before its own."""
    moment: datetime = db.fetch(NOW)[0][0]
    return moment


def put(db: Database, moment: datetime) -> str:
    """Let this session see this time; returns the ``search_path`` that it had."""
    db.run(MAKE_SCHEMA)
    for name, volatility in FUNCTIONS.items():
        db.run(MAKE_FUNCTION.format(name=name, volatility=volatility))
    move(db, moment)
    before: str = db.fetch(PATH)[0][0]
    parts = [part for part in (before, SCHEMA, "pg_catalog") if part]
    db.fetch(SET_PATH, {"path": ", ".join(parts)})
    return before


def move(db: Database, moment: datetime) -> None:
    """Let it be this time."""
    db.fetch(SET_CLOCK, {"now": moment.isoformat()})


def take_away(db: Database, path: str) -> None:
    """Let this session see PostgreSQL's time again; ``path`` is what ``put``
    returned."""
    db.fetch(SET_PATH, {"path": path})
    db.run(DROP_SCHEMA)
