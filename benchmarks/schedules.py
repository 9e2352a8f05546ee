"""How late schedules fire, one at a time and a thousand at once, beside a bare INSERT.

Starts ``runworkers`` on a database of its own on the server of the test suite. First 50
schedules fire each second, then 1,000 in the same second. Prints how late the firings
were made and their jobs started, by the database's clock.

    python -m benchmarks.schedules --schedules 1000
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from benchmarks.own_database import own_database

JOB_TYPE = "tests.sample.add"
AHEAD = timedelta(seconds=35)  # two looks of a host, and its start

BARE = """
INSERT INTO jobqueue_queuedjob (id, job_type, queue, priority, data, run_after)
SELECT jobqueue_uuidv7(), %(job_type)s, 'default', 0, '{"a": 1}',
       clock_timestamp() + interval '1 day'
  FROM generate_series(1, %(rows)s)
"""
LATE = """
SELECT extract(epoch FROM firing.created_at - firing.fires_at)::float8 * 1000,
       extract(epoch FROM job.started_at - firing.fires_at)::float8 * 1000
  FROM jobqueue_schedules_firing AS firing
  LEFT JOIN jobqueue_archivedjob AS job ON job.id = firing.job_id
 WHERE firing.schedule LIKE %(names)s AND firing.outcome = 'fired'
"""


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()

    with own_database("schedules"):
        with workers():
            each_second(50, options.seconds)
            at_once(options.schedules)
        bare(options.schedules)


@contextmanager
def workers() -> Iterator[None]:
    """A host, while this lasts."""
    from tests.support.commands import worker_environment

    process = subprocess.Popen(
        [sys.executable, "-m", "django", "runworkers", "--threads", "4"],
        env={**worker_environment(), "SAMPLE_SCHEDULES": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def create(name: str, rule: str, **values: Any) -> None:
    """A schedule of an operator's."""
    from django_jobqueue.contrib.schedules import operations as schedule_operations

    schedule_operations.create(name, JOB_TYPE, rule=rule, data={"a": 1}, **values)


def begin() -> datetime:
    """A whole second that is far enough ahead."""
    from django.utils import timezone

    wait_for_job_type()
    return (timezone.now() + AHEAD).replace(microsecond=0)


def wait_for_job_type() -> None:
    """The host declares it when it starts."""
    from django_jobqueue.models import JobType

    while not JobType.objects.filter(name=JOB_TYPE).exists():
        time.sleep(0.1)


def each_second(number: int, seconds: int) -> None:
    """One schedule at a time: each fires in a second of its own, again and again."""
    first = begin()
    for n in range(number):
        since = (first + timedelta(seconds=n * seconds // number)).timestamp()
        create(f"alone-{n}", f"every {seconds} since {since:.0f}", starts=first)
    wait_until(first + timedelta(seconds=seconds + 2))
    report(f"{number} schedules in {seconds} s", "alone-%")


def at_once(number: int) -> None:
    """All of them in the same second."""
    first = begin()
    for n in range(number):
        since = first.timestamp()
        create(f"once-{n}", f"every 86400 since {since:.0f}", starts=first)
    wait_until(first + timedelta(seconds=5))
    report(f"{number:,} schedules in one second", "once-%")


def wait_until(moment: datetime) -> None:
    """Sleep."""
    from django.utils import timezone

    time.sleep(max(0.0, (moment - timezone.now()).total_seconds()))


def report(title: str, names: str) -> None:
    """Print how late the firings and the starts of their jobs were."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(LATE, {"names": names})
        rows = cursor.fetchall()
    fired = [made for made, _ in rows]
    started = [at for _, at in rows if at is not None]
    print(f"{title}: {len(fired):,} fired, {len(started):,} of their jobs started")
    for what, late in (("fired", fired), ("started", started)):
        middle, most = statistics.median(late), max(late)
        print(f"  {what:<8} p50 {middle:7.1f} ms late, at most {most:7.1f} ms")


def bare(number: int) -> None:
    """One INSERT of as many jobs."""
    from django.db import connection

    seconds = []
    with connection.cursor() as cursor:
        for _ in range(3):
            began = time.perf_counter()
            cursor.execute(BARE, {"job_type": JOB_TYPE, "rows": number})
            seconds.append(time.perf_counter() - began)
    print(
        f"bare INSERT of {number:,} jobs: {statistics.median(seconds) * 1_000:.1f} ms"
    )


if __name__ == "__main__":
    main()
