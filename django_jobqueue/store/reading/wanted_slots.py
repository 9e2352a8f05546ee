"""Reads how many slots the jobs of each queue could use now: what autoscalers ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import lanes

OF_QUEUES: Final = """
SELECT queue, jobqueue_wanted_slots(queue) FROM unnest(%(queues)s::text[]) AS queue
"""

# Also those that are empty now: an autoscaler should read 0, and not nothing.
KNOWN_QUEUES: Final = """
SELECT queue FROM jobqueue_jobtype
 UNION
SELECT queue FROM jobqueue_queuedjob WHERE status = 'running'
"""


def wanted_slots(db: Database, also: Iterable[str] = ()) -> dict[str, int]:
    """The wanted slots of each queue in which jobs wait or run, or that a job type
    names, and of these ones, in order: the metric ``jobqueue_wanted_slots``."""
    known = {*also, *(queue for (queue,) in db.fetch(KNOWN_QUEUES))}
    names = sorted(known.union(lanes.queues(db)))
    return dict(db.fetch(OF_QUEUES, {"queues": names})) if names else {}


def wanted_slots_of(db: Database, queue: str) -> int:
    """The wanted slots of one queue."""
    ((_queue, count),) = db.fetch(OF_QUEUES, {"queues": [queue]})
    number: int = count
    return number
