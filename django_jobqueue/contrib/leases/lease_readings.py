"""Reads who holds which lease, and says in ``jobqueue status`` which host is active."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.management.jobqueue.status_contents import StatusList
from django_jobqueue.store.connection import Database
from django_jobqueue.verbs.columns import NUMBER, SPAN, Column, Listing, only_json

MOST: Final = 1_000

_COLUMNS: Final = """name, fence, token IS NOT NULL, holder, host,
       taken_at, lease_until,
       extract(epoch FROM lease_until - statement_timestamp())::float8"""

LEASES: Final = f"""
SELECT {_COLUMNS}
  FROM jobqueue_leases_lease
 WHERE token IS NOT NULL OR %(free)s
 ORDER BY name
 LIMIT {MOST}
"""

# Also those that nobody has had for a day, since a host should. By a range of the
# primary key, which is in the order of bytes.
STANDBY_LEASES: Final = f"""
SELECT {_COLUMNS}
  FROM jobqueue_leases_lease
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


def _if_held(value: Any) -> Any:
    return lambda one: value(one) if one.row.state == "held" else None


_LISTING: Final = Listing(
    (
        Column(
            "name",
            "Name",
            value=lambda one: one.row.name.removeprefix(STANDBY),
            breaks=True,
        ),
        Column(
            "active",
            value=_if_held(lambda one: one.row.holder),
            note="null if no host is",
        ),
        Column(
            "",
            "Active host",
            value=lambda one: (
                one.row.holder
                if one.row.state == "held"
                else f"none (the last one was {one.row.holder})"
            ),
            breaks=True,
        ),
        *only_json("host since", "row"),
        Column("lease", value="row.left"),
        Column("", "Lease", SPAN, _if_held(lambda one: one.row.left)),
        Column("", "Age", SPAN, _if_held(lambda one: one.since(one.row.since))),
        Column("fence", "Fence", NUMBER, "row.fence"),
    ),
    color=lambda one: "" if one.row.state == "held" else "red",
)
STANDBY_HOSTS: Final = StatusList(
    "standby", "of runworkers --standby", "Standby", _LISTING, standby_leases
)
