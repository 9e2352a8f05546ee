"""The living workers, and the jobs they would claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django_jobqueue.domain.states import ALIVE, WorkerState
from django_jobqueue.store.reading.stats import WorkerRow


class Claimer(NamedTuple):
    """The jobs that a living worker would claim. ``queues`` None is all of them."""

    queues: frozenset[str] | None
    job_types: frozenset[str]

    def serves(self, queue: str) -> bool:
        """True if it claims from this queue."""
        return self.queues is None or queue in self.queues

    def claims(self, queue: str, job_type: str) -> bool:
        """True if it claims jobs of this type from this queue."""
        return self.serves(queue) and job_type in self.job_types


def is_alive(worker: WorkerRow) -> bool:
    """True if its row and its lease say that this worker lives."""
    return worker.state in ALIVE and worker.lease > 0


def has_lapsed(worker: WorkerRow) -> bool:
    """True if it should live and does not renew its lease."""
    return worker.state in ALIVE and not is_alive(worker)


def is_claiming(worker: WorkerRow) -> bool:
    """True if it lives and claims jobs: it does not drain."""
    return is_alive(worker) and worker.state == WorkerState.RUNNING


def claimers(
    workers: Iterable[WorkerRow], known: Mapping[int, frozenset[str]]
) -> list[Claimer]:
    """The claims of living workers, draining ones aside; ``known`` are the job types
    that each has handlers for."""
    return [
        Claimer(
            None if worker.queues is None else frozenset(worker.queues),
            frozenset(known.get(worker.id, ())),
        )
        for worker in workers
        if is_claiming(worker)
    ]
