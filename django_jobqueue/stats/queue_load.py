"""How much work waits in a queue, and for how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from django_jobqueue.domain.registry import registry
from django_jobqueue.stats import current_state
from django_jobqueue.store.connection import Database
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_claiming
from django_jobqueue.store.reading.stats import CAP, WorkerRow

HOUR: Final = 3_600.0  # seconds whose run times count
UNKNOWN: Final = 1.0  # seconds of a job of a type that did not run for an hour


class QueueLoad(NamedTuple):
    """The waiting jobs of a queue, except paused ones."""

    ready: int  # jobs, of each type counted up to 10,000
    oldest_seconds: float  # that the oldest of them has waited; 0 if there is none
    backlog_seconds: float  # until the slots that are alive have run them


class _SlotType(Enum):
    THREAD = auto()
    ASYNC = auto()
    REMOTE = auto()


def queue_load(db: Database, queue: str) -> QueueLoad:
    """The load of this queue at this moment."""
    present = current_state.read(db)
    waiting = [
        depth for depth in current_state.unpaused(present) if depth.queue == queue
    ]
    seconds = stats.mean_run_times(db, queue, HOUR)
    work: dict[_SlotType, float] = defaultdict(float)
    for depth in waiting:
        each = seconds.get(depth.job_type, UNKNOWN)
        work[_slot_type(depth.job_type)] += min(depth.ready, CAP) * each
    slots = _slots(present.workers, queue)
    return QueueLoad(
        ready=sum(min(depth.ready, CAP) for depth in waiting),
        oldest_seconds=max((depth.oldest or 0.0 for depth in waiting), default=0.0),
        backlog_seconds=max(
            (amount / max(1, slots[slot_type]) for slot_type, amount in work.items()),
            default=0.0,
        ),
    )


def _slot_type(job_type: str) -> _SlotType:
    """The slots that jobs of this type take."""
    declaration = registry.get(job_type)
    if declaration is None:
        return _SlotType.THREAD
    if declaration.is_remote:
        return _SlotType.REMOTE
    return _SlotType.ASYNC if declaration.is_async else _SlotType.THREAD


def _slots(workers: Iterable[WorkerRow], queue: str) -> dict[_SlotType, int]:
    """The slots of the workers that claim from this queue."""
    slots = dict.fromkeys(_SlotType, 0)
    for worker in workers:
        if is_claiming(worker) and (worker.queues is None or queue in worker.queues):
            slots[_SlotType.THREAD] += worker.threads
            others = _SlotType.REMOTE if worker.is_remote else _SlotType.ASYNC
            slots[others] += worker.async_slots
    return slots
