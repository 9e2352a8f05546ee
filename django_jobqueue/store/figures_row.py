"""The figures that all who ask share: whoever finds them old takes them again, if
nobody else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from django_jobqueue.store.connection import Database, DjangoDatabase, OwnConnection
from django_jobqueue.text.json_reading import read_json

T = TypeVar("T")

READ: Final = """
SELECT extract(epoch FROM clock_timestamp() - taken_at)::float8, figures::text
  FROM jobqueue_figures
 WHERE name = %(name)s
"""

# Those who make the row at once wait for the first of them here, and find figures then.
CREATE: Final = """
INSERT INTO jobqueue_figures (name, taken_at, figures)
VALUES (%(name)s, 'epoch', '[]')
    ON CONFLICT (name) DO NOTHING
"""

WAIT: Final = """
SELECT extract(epoch FROM clock_timestamp() - taken_at)::float8, clock_timestamp(),
       figures::text
  FROM jobqueue_figures
 WHERE name = %(name)s
   FOR UPDATE
"""
LOCK: Final = f"{WAIT} SKIP LOCKED"

WRITE: Final = """
UPDATE jobqueue_figures
   SET taken_at = %(taken_at)s, figures = %(figures)s::jsonb
 WHERE name = %(name)s
"""


class Figures(NamedTuple):
    """Figures, and how many seconds ago they were taken."""

    age: float
    values: Any  # as JSON has them


def read(db: Database, name: str) -> Figures | None:
    """The figures of this name, however old; None if there are none."""
    for age, text in db.fetch(READ, {"name": name}):
        return Figures(age, read_json(text))
    return None


def take(
    db: Database, name: str, oldest: float, figures: Callable[[], Any], *, waits: bool
) -> Figures | None:
    """Take the figures again, if they are older than ``oldest`` seconds, in the
    transaction that is open. If somebody else does: None, or, with ``waits``, wait for
    theirs; say so where there are none yet."""
    if waits:
        db.run(CREATE, {"name": name})
    for age, now, text in db.fetch(WAIT if waits else LOCK, {"name": name}):
        if age <= oldest:
            return Figures(age, read_json(text))
        return _write(db, name, now, figures())
    return None


def _write(db: Database, name: str, now: datetime, figures: Any) -> Figures:
    params = {"name": name, "taken_at": now, "figures": json.dumps(figures)}
    db.run(WRITE, params)
    return Figures(0.0, figures)


def in_transaction(
    db: DjangoDatabase | OwnConnection, work: Callable[[Database], T]
) -> T:
    """Do this in a transaction of either kind of connection."""
    if isinstance(db, DjangoDatabase):
        return db.in_transaction(lambda: work(db))
    with db.transaction() as opened:
        return work(opened)
