"""Reads the next deadlines of a host's maintenance process, in one statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from django_jobqueue import rooms
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.claim_quarantined import (
    NEXT_QUARANTINED,
    quarantine_params,
)
from django_jobqueue.store.queue.expire import NEXT_EXPIRY
from django_jobqueue.store.worker_rows import NEXT_LAPSE

DEADLINES: Final = f"""
SELECT lapse, quarantined, expiry, is_held_back, was_set_back, clock,
       longest_lease{{names}}
  FROM ({NEXT_LAPSE}) AS next_lapse (lapse, was_set_back, clock,
                                      longest_lease),
       ({NEXT_QUARANTINED}) AS next_quarantined (quarantined, is_held_back),
       ({NEXT_EXPIRY}) AS next_expiry (expiry){{parts}}
"""


class Deadline(NamedTuple):
    """A moment that a loop of a room waits for."""

    name: str
    sql: str  # selects the seconds until then; NULL if there is none
    params: Callable[[], Mapping[str, object]]  # of each reading


class NextDeadlines(NamedTuple):
    """Seconds until something is to be done; None if nothing of that kind is."""

    lapse: float | None = None  # until the first lease lapses unless it is renewed
    quarantined: float | None = None  # until a job that must run alone may be claimed
    expiry: float | None = None  # until the next job expires
    is_held_back: bool = False  # a job that must run alone is due, and may not run yet
    was_set_back: bool = False  # the database's clock, since a lease was granted
    clock: float = 0.0  # the database's, in seconds since 1970
    longest_lease: float = 0.0  # seconds; of remote workers
    of_rooms: Mapping[str, float | None] = {}  # until their deadlines, by name

    def after(self, seconds: float) -> NextDeadlines:
        """The same deadlines, this many seconds later."""

        def later(deadline: float | None) -> float | None:
            return None if deadline is None else deadline - seconds

        return self._replace(
            lapse=later(self.lapse),
            quarantined=later(self.quarantined),
            expiry=later(self.expiry),
            clock=self.clock + seconds,
            of_rooms={name: later(it) for name, it in self.of_rooms.items()},
        )


def read(
    db: Database, job_types: Sequence[str], queues: Sequence[str] | None
) -> NextDeadlines:
    """Look ahead; of jobs that must run alone at those of these types and queues."""
    params = quarantine_params(job_types, queues)
    for one in _deadlines():
        params |= one.params()
    row = db.fetch(statement(), params)[0]
    names = [one.name for one in _deadlines()]
    own = len(row) - len(names)
    of_rooms = dict(zip(names, row[own:], strict=True))
    return NextDeadlines(*row[:own])._replace(of_rooms=of_rooms)


@cache
def statement() -> str:
    """The statement with the deadlines of all installed features."""
    return DEADLINES.format(
        names="".join(f", {one.name}" for one in _deadlines()),
        parts="".join(
            f",\n       ({one.sql}) AS next_{one.name} ({one.name})"
            for one in _deadlines()
        ),
    )


@cache
def _deadlines() -> tuple[Deadline, ...]:
    return tuple(rooms.offered("deadlines"))
