"""The measurements of ``jobqueue bench``."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import django_jobqueue
from django_jobqueue import job
from django_jobqueue.domain.registry import registry
from django_jobqueue.store import bench_rows, job_types
from django_jobqueue.store.connection import DjangoDatabase

NAME: Final = "jobqueue.bench"
SINGLE: Final = 10  # of so many jobs one is enqueued by itself
MOST_SINGLE: Final = 2_000
PICKUPS: Final = 200
LONGEST: Final = 600.0  # seconds that a worker may take
DATA: Final = {"order_id": 7, "note": "two hundred bytes, as in a shop: " + "x" * 140}


class Figures(NamedTuple):
    """What was measured."""

    enqueued_singly: float  # jobs a second, each in a transaction of its own
    enqueued_together: float  # jobs a second, by enqueue_many
    drained: float  # jobs a second, by one process
    pickup: float  # median milliseconds from the enqueue to the start of the handler
    pickup_p95: float
    wal_bytes: float  # of a job, from its enqueue to the archive


class Marks:
    """When handlers start: called by the worker, in this process."""

    def __init__(self) -> None:
        self.first = 0.0  # time.perf_counter()
        self.last = 0.0
        self.started = threading.Event()

    def start(self) -> None:
        """A handler starts."""
        self.last = time.perf_counter()
        if not self.first:
            self.first = self.last
        self.started.set()

    def reset(self) -> None:
        """Before the next measurement."""
        self.first = self.last = 0.0
        self.started.clear()


Step = Callable[[str], None]


def measure(count: int, threads: int, step: Step) -> Figures:
    """Measure with so many jobs, in a queue of its own, and tell each step. Whoever
    calls removes the rows, whatever happens."""
    queue, marks = f"{NAME}.{os.getpid()}", Marks()
    with _handler(marks, queue) as handler:
        db = DjangoDatabase()
        wal = bench_rows.wal_bytes(db)
        step("Enqueueing one by one")
        few = min(MOST_SINGLE, max(1, count // SINGLE))
        singly = _per_second(few, lambda: [handler.enqueue(**DATA) for _ in range(few)])
        step("Enqueueing many at once")
        many = max(1, count - few)
        together = _per_second(
            many, lambda: handler.enqueue_many(DATA for _ in range(many))
        )
        step("Draining")
        with django_jobqueue.worker(
            queues=[queue], threads=threads, async_slots=0, grace=5
        ) as worker:
            worker.wait_idle(LONGEST)
            drained = (few + many) / max(marks.last - marks.first, 1e-6)
            wal = bench_rows.wal_bytes(db) - wal
            step("Enqueueing for an idle worker")
            waits = sorted(_pickups(handler, marks))
    return Figures(
        enqueued_singly=singly,
        enqueued_together=together,
        drained=drained,
        pickup=statistics.median(waits),
        pickup_p95=waits[int(len(waits) * 0.95)],
        wal_bytes=wal / (few + many),
    )


def _pickups(handler: Any, marks: Marks) -> Iterator[float]:
    """Milliseconds from the enqueue of single jobs to the start of each."""
    for _ in range(PICKUPS):
        time.sleep(0.01)  # the worker is idle again
        marks.reset()
        began = time.perf_counter()
        handler.enqueue(**DATA)
        if not marks.started.wait(LONGEST):
            raise TimeoutError("The worker did not start a job.")
        yield (marks.first - began) * 1_000


@contextmanager
def _handler(marks: Marks, queue: str) -> Iterator[Any]:
    """The handler, known to no other process."""

    @job(name=NAME, queue=queue, max_attempts=1)
    def handler(order_id: int, note: str) -> None:
        marks.start()

    try:
        job_types.declare(DjangoDatabase(), [handler.declaration])
        yield handler
    finally:
        registry.remove(NAME)


def _per_second(count: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)
