"""How fast a bulk operation replays, beside a bare INSERT … SELECT of the same rows.

Fills a database of its own on the server of the test suite with archived jobs, replays
them all by one operation as a worker would, and meanwhile enqueues and claims other
jobs. Prints jobs per second, the ratio to the bare statement, the longest statement,
and how long claims took.

    python -m benchmarks.bulk_operations --jobs 100000
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from benchmarks.own_database import own_database

JOB_TYPE = "shop.charge"
OTHER = "shop.mail"

FILL = """
INSERT INTO jobqueue_archivedjob (
       id, job_type, queue, data, run_after, created_at, attempts, status, started_at,
       finished_at, wait_ms, run_ms, worker, error_class, error_message, fingerprint)
SELECT jobqueue_uuidv7(), %(job_type)s, 'default',
       jsonb_build_object('order', n, 'note', repeat('x', 120)), at, at, 5, 'failed',
       at, at + interval '1 second', 5, 1000, 'web-1:4100', 'shop.errors.Declined',
       'HTTP 503', md5((n %% 20)::text)::uuid
  FROM (SELECT n, clock_timestamp() - n * interval '100 ms' AS at
          FROM generate_series(1, %(rows)s) AS n) AS made
"""
BARE = """
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, max_attempts, replay_of, root_id,
       bulk_operation_id, enqueued_by, tags)
SELECT jobqueue_uuidv7(), job_type, queue, priority, data, %(run_after)s, max_attempts,
       id, id, jobqueue_uuidv7(), 'anna', tags
  FROM jobqueue_archivedjob
 WHERE status = 'failed'
 ORDER BY finished_at, id
"""


@dataclass
class Timed:
    """Statements of a connection, and how long each took."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*args)
        finally:
            self.seconds.append(time.perf_counter() - began)


def main() -> None:
    """Fill, measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    options = parser.parse_args()

    with own_database("bulk_operations"):
        fill(options.jobs)
        bare = insert_bare()
        report(options.jobs, bare, *replay())


def fill(rows: int) -> None:
    """Archived jobs, all of them failed."""
    from django.db import connection

    from django_jobqueue.models import JobType

    for name in (JOB_TYPE, OTHER):
        JobType.objects.create(name=name)
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"job_type": JOB_TYPE, "rows": rows})
        cursor.execute("VACUUM ANALYZE jobqueue_archivedjob")


def insert_bare() -> float:
    """Seconds of the one statement; what it inserted is taken away again."""
    from django.db import connection
    from django.utils import timezone

    later = timezone.now() + timedelta(days=1)
    with connection.cursor() as cursor:
        began = time.perf_counter()
        cursor.execute(BARE, {"run_after": later})
        seconds = time.perf_counter() - began
        cursor.execute("TRUNCATE jobqueue_queuedjob")
        cursor.execute("VACUUM jobqueue_queuedjob")
    return seconds


def replay() -> tuple[float, list[float], list[float]]:
    """Seconds of the operation, of each of its statements, and of claims meanwhile."""
    from django.db import connection
    from django.utils import timezone

    from django_jobqueue.models import BulkOperation, QueuedJob
    from django_jobqueue.operations import bulk
    from django_jobqueue.search.selection import Selection, Table, Term

    failed = Selection(Table.ARCHIVED, (Term("status", "failed"),))
    later = timezone.now() + timedelta(days=1)
    made = bulk.draft("replay", failed, run_after=later, skip_replayed="any")
    bulk.start(made.id)
    over, claims = threading.Event(), list[float]()
    other = threading.Thread(target=claim_others, args=(over, claims))
    other.start()
    timed, began = Timed(), time.perf_counter()
    with connection.execute_wrapper(timed):
        work_off(made.id)
    seconds = time.perf_counter() - began
    over.set()
    other.join()
    row = BulkOperation.objects.get()
    created = QueuedJob.objects.filter(bulk_operation_id=row.pk).count()
    assert row.state == "done", row.state
    assert row.changed == created, (row.changed, created)
    return seconds, timed.seconds, claims


def work_off(id: Any) -> None:
    """What its jobs do, one after the other, in a worker."""
    from django.utils import timezone

    from django_jobqueue.domain.context import Context
    from django_jobqueue.models import BulkOperation
    from django_jobqueue.operations import bulk

    while (row := BulkOperation.objects.get(pk=id)).state != "done":
        assert row.job_id is not None
        context = Context(
            id=row.job_id,
            job_type="jobqueue.bulk",
            queue="default",
            attempt=1,
            max_attempts=10,
            crashes=0,
            data={},
            run_after=timezone.now(),
            created_at=timezone.now(),
            worker="bench:1",
        )
        bulk.WORK.run_job(context, id)


def claim_others(over: threading.Event, seconds: list[float]) -> None:
    """Enqueue and claim jobs of another type, one at a time, as a worker does."""
    from django_jobqueue import enqueue
    from django_jobqueue.store.connection import OwnConnection
    from django_jobqueue.store.queue import claim
    from django_jobqueue.store.queue.lanes import LaneMark
    from django_jobqueue.store.rows import Lane
    from django_jobqueue.store.session import PINNED

    own = OwnConnection("bench", plans=PINNED)
    lane = LaneMark(Lane("default", 0, OTHER))
    while not over.is_set():
        enqueue(OTHER)
        began = time.perf_counter()
        assert claim.claim(own, 1, [lane], 1)
        seconds.append(time.perf_counter() - began)
        time.sleep(0.01)
    own.close()
    from django.db import connections

    connections.close_all()


def report(
    jobs: int,
    bare: float,
    seconds: float,
    statements: list[float],
    claims: list[float],
) -> None:
    """Print what was measured."""
    claims.sort()
    print(f"{jobs:,} archived jobs")
    print(f"bulk operation        {jobs / seconds:10,.0f} jobs/s  {seconds:8.2f} s")
    print(f"bare INSERT … SELECT  {jobs / bare:10,.0f} jobs/s  {bare:8.2f} s")
    print(f"ratio                 {bare / seconds:10.2f}")
    print(f"longest statement     {max(statements) * 1_000:10.0f} ms")
    middle, longest = claims[len(claims) // 2] * 1_000, claims[-1] * 1_000
    print(
        f"claims meanwhile      {len(claims):10,}         p50 {middle:.1f} ms, ", end=""
    )
    print(f"longest {longest:.0f} ms")


if __name__ == "__main__":
    main()
