"""Reads the next deadlines of a host's maintenance process, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.claim_quarantined import (
    NEXT_QUARANTINED,
    quarantine_params,
)
from django_jobqueue.store.queue.expire import NEXT_EXPIRY
from django_jobqueue.store.schedules.due_schedules import NEXT_FIRING
from django_jobqueue.store.worker_rows import NEXT_LAPSE

DEADLINES: Final = f"""
SELECT lapse, quarantined, expiry, firing, is_held_back, was_set_back, clock,
       longest_lease
  FROM ({NEXT_LAPSE}) AS next_lapse (lapse, was_set_back, clock,
                                      longest_lease),
       ({NEXT_QUARANTINED}) AS next_quarantined (quarantined, is_held_back),
       ({NEXT_EXPIRY}) AS next_expiry (expiry),
       ({NEXT_FIRING}) AS next_firing (firing)
"""


class NextDeadlines(NamedTuple):
    """Seconds until something is to be done; None if nothing of that kind is."""

    lapse: float | None = None  # until the first lease lapses unless it is renewed
    quarantined: float | None = None  # until a job that must run alone may be claimed
    expiry: float | None = None  # until the next job expires
    firing: float | None = None  # until a schedule fires, or is to be planned
    is_held_back: bool = False  # a job that must run alone is due, and may not run yet
    was_set_back: bool = False  # the database's clock, since a lease was granted
    clock: float = 0.0  # the database's, in seconds since 1970
    longest_lease: float = 0.0  # seconds; of remote workers

    def after(self, seconds: float) -> NextDeadlines:
        """The same deadlines, this many seconds later."""

        def later(deadline: float | None) -> float | None:
            return None if deadline is None else deadline - seconds

        return self._replace(
            lapse=later(self.lapse),
            quarantined=later(self.quarantined),
            expiry=later(self.expiry),
            firing=later(self.firing),
            clock=self.clock + seconds,
        )


def read(
    db: Database,
    job_types: Sequence[str],
    queues: Sequence[str] | None,
    schedules: Sequence[str] = (),
) -> NextDeadlines:
    """Look ahead; of jobs that must run alone at those of these types and queues, of
    schedules of the code at these."""
    params = quarantine_params(job_types, queues)
    params |= {"schedules": list(schedules), "without": []}
    return NextDeadlines(*db.fetch(DEADLINES, params)[0])
