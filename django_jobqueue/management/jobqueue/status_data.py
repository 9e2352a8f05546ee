"""What ``jobqueue status`` knows: read once, for people and for programs."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.stats import current_state as present
from django_jobqueue.stats.current_state import Present
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.leases import LeaseRow, standby_leases
from django_jobqueue.store.reading.stats import FailureCount, Recent

WINDOW: Final = 3_600.0  # seconds that failures and throughput are of


class Figures(NamedTuple):
    """The state of the whole job queue, and what happened in the last hour."""

    present: Present
    failures: list[FailureCount]
    recent: list[Recent]
    standby: list[LeaseRow]  # of hosts of which one is active


def read() -> Figures:
    """Read everything, from the caller's connection."""
    db = DjangoDatabase()
    return Figures(
        present.read(),
        stats.failures(db, WINDOW),
        stats.recent(db, WINDOW),
        standby_leases(db),
    )
