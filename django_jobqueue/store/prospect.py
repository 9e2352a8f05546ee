"""What is ahead of a host's keeper, in one look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database
from django_jobqueue.store.expire import NEXT_EXPIRY
from django_jobqueue.store.workers import OUTLOOK

LOOK: Final = f"""
SELECT lapse, alone, expiry
  FROM ({OUTLOOK}) AS outlook (lapse, alone), ({NEXT_EXPIRY}) AS next (expiry)
"""


class Prospect(NamedTuple):
    """Seconds until something is to be done; None if nothing of that kind is."""

    lapse: float | None = None  # until the first lease lapses unless it is renewed
    alone: float | None = None  # until the first job that must run alone is due
    expiry: float | None = None  # until the next job expires


def look(
    db: Database, job_types: Sequence[str], queues: Sequence[str] | None
) -> Prospect:
    """Look ahead; of jobs that must run alone only at those of these types and
    queues."""
    params = {"job_types": list(job_types), "queues": queues and list(queues)}
    return Prospect(*db.fetch(LOOK, params)[0])
