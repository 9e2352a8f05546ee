"""Reads who holds which lease."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.store.connection import Database

MOST: Final = 1_000

_COLUMNS: Final = """name, fence, token IS NOT NULL, holder, host,
       taken_at, lease_until,
       extract(epoch FROM lease_until - statement_timestamp())::float8"""

LEASES: Final = f"""
SELECT {_COLUMNS}
  FROM jobqueue_lease
 WHERE token IS NOT NULL OR %(free)s
 ORDER BY name
 LIMIT {MOST}
"""

# Also those that nobody has had for a day, since a host should. By a range of the
# primary key, which is in the order of bytes.
STANDBY_LEASES: Final = f"""
SELECT {_COLUMNS}
  FROM jobqueue_lease
 WHERE name >= '{STANDBY}' AND name < '{STANDBY[:-1]};'
   AND lease_until > statement_timestamp() - interval '1 day'
 ORDER BY name
 LIMIT {MOST}
"""


class LeaseRow(NamedTuple):
    """A lease as its row says."""

    name: str
    fence: int
    is_taken: bool
    holder: str  # host:pid; the last one of a lease that is free
    host: str
    since: datetime
    until: datetime  # when it lapses, or became free
    left: float  # seconds; negative: it lapsed, or is free

    @property
    def state(self) -> str:
        """``held``, ``lapsed`` (its holder does not renew it) or ``free``."""
        if not self.is_taken:
            return "free"
        return "held" if self.left > 0 else "lapsed"


def leases(db: Database, *, free: bool = False) -> list[LeaseRow]:
    """Those that are held or have lapsed; with ``free`` all."""
    return [LeaseRow(*row) for row in db.fetch(LEASES, {"free": free})]


def standby_leases(db: Database) -> list[LeaseRow]:
    """Those of ``runworkers --standby``."""
    return [LeaseRow(*row) for row in db.fetch(STANDBY_LEASES)]
