"""What observers cost: jobs without any, with one that does nothing, and traced ones.

Blocks of each kind take turns, in a database of its own on the server of the test
suite. In a block jobs are enqueued, each in its own transaction, and then drained by a
worker in this process. Prints the CPU time of this process for an enqueue and for an
attempt, without the server's, and the ratio to jobs that nobody observes.

    python -m benchmarks.observed_jobs --rounds 20 --kinds off,observer
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from benchmarks.own_database import own_database

BLOCK: Final = 1_000  # jobs of a kind at a time
KINDS: Final = ("off", "observer", "opentelemetry", "sentry")
SLOWEST: Final = 60.0  # seconds for a block


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=BLOCK)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()

    with own_database("observed_jobs"):
        kinds = {kind: prepared(kind) for kind in options.kinds.split(",")}
        report(measure(kinds, options.rounds, options.jobs))


def prepared(kind: str) -> tuple[Any, ...]:
    """The observers of a kind."""
    from django_jobqueue.observers import Observer

    if kind == "observer":
        return (Observer(),)
    if kind == "opentelemetry":
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

        from django_jobqueue.contrib.telemetry.otel import TracingObserver

        class Discarding(SpanExporter):
            def export(self, spans: Any) -> Any: ...

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(Discarding()))
        return (TracingObserver(provider),)
    if kind == "sentry":
        import sentry_sdk
        from sentry_sdk.transport import Transport

        from django_jobqueue.contrib.telemetry.sentry import (
            OBSERVER,
            JobQueueIntegration,
        )

        class Discarding(Transport):  # type: ignore[no-redef]
            def capture_envelope(self, envelope: Any) -> None: ...

        sentry_sdk.init(
            dsn="http://key@localhost/1",
            transport=Discarding,
            integrations=[JobQueueIntegration()],
            default_integrations=False,
            traces_sample_rate=1.0,
        )
        return (OBSERVER,)
    return ()


def measure(
    kinds: dict[str, tuple[Any, ...]], rounds: int, jobs: int
) -> dict[str, list[tuple[float, float]]]:
    """Seconds of CPU for an enqueue and an attempt, of each block, by kind."""
    from django_jobqueue import job, observers

    @job(name="bench.observed")
    def index(key: int, number: int) -> None: ...

    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    names = list(kinds)
    observers.registered = ()
    block(index, jobs)  # warms up
    for turn in range(rounds):
        first = turn % len(names)
        for kind in names[first:] + names[:first]:
            observers.registered = kinds[kind]
            found[kind].append(block(index, jobs))
    observers.registered = ()
    return found


def block(handler: Any, jobs: int) -> tuple[float, float]:
    """Enqueue so many jobs and drain them; the CPU time of each step for a job."""
    from django.db import connection

    from django_jobqueue.models import ArchivedJob

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobqueue_queuedjob, jobqueue_archivedjob")
    with spent() as enqueueing:
        for number in range(jobs):
            handler.enqueue(number, number=number)
    with spent() as working, worker() as one:
        ends = time.monotonic() + SLOWEST
        while not one.finish_drain() and time.monotonic() < ends:
            time.sleep(0.02)
    assert ArchivedJob.objects.filter(status="succeeded").count() == jobs
    return enqueueing() / jobs, working() / jobs


@contextmanager
def spent() -> Iterator[Callable[[], float]]:
    """The CPU time of this process in the block, after it."""
    began, ended = time.process_time(), 0.0
    yield lambda: ended - began
    ended = time.process_time()


@contextmanager
def worker() -> Iterator[Any]:
    """A worker with one thread, in this process."""
    from django_jobqueue.processes.worker_config import WorkerConfig
    from django_jobqueue.workers.worker import Worker

    one = Worker(WorkerConfig(threads=1, async_slots=0, listen=False, drain=True))
    one.register()
    one.build()
    one.start()
    try:
        yield one
    finally:
        one.stop(5)
        for executor in one.executors:
            executor.stop(5)


def report(found: dict[str, list[tuple[float, float]]]) -> None:
    """Print the medians, and the ratio to what nobody observes."""
    print(f"{'':14}{'enqueue':>12}{'':10}{'attempt':>12}")
    base = [
        statistics.median(step) for step in zip(*found[next(iter(found))], strict=True)
    ]
    for kind, blocks in found.items():
        medians = [statistics.median(step) for step in zip(*blocks, strict=True)]
        cells = [
            f"{median * 1e6:9,.1f} µs {median / of:6.2f} ×"
            for median, of in zip(medians, base, strict=True)
        ]
        print(f"{kind:14}" + "  ".join(cells))


if __name__ == "__main__":
    main()
