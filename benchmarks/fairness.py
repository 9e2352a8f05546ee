"""What is shared: turns of tenants, weights of queues, a rate, and the slots of keys,
by real workers.

In a database of its own on the server of the test suite. ``tenant``: how long one job
of a tenant waits beside a million of another one, and how many of these start before
it, beside the same without them. ``weights``: the first 10,000 starts of three queues
of 5 : 3 : 1. ``rate``: sixteen processes share 400 starts a second, burst 40: how much
of what is allowed they use, and the most in any second. ``keys``: how much of their
time 32 slots of eight processes are idle though one of 200 keys, of which two jobs may
run each, permits another job, by the handlers' journal. ``--page`` keeps the figures
for the documentation. A quarter of an hour; ``--waiting 10000`` is shorter.

    python -m benchmarks.fairness --waiting 1000000 --rounds 60
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from itertools import pairwise
from statistics import median
from typing import Any, Final

from benchmarks.figures import number, percentile
from benchmarks.idle_slots import idle_slots
from benchmarks.kept import keep, place_of, section_of
from benchmarks.own_database import own_database
from benchmarks.tables import line

RESULTS: Final = place_of("fairness")
PATIENCE: Final = 120.0  # seconds
WEIGHTS: Final = {"high": 5, "default": 3, "low": 1}
STARTS: Final = 10_000  # of all queues
LIMIT, BURST, PROCESSES = 400, 40, 16  # of the rate
SECONDS: Final = 20  # that the rate is looked at
SETTLING: Final = 3  # seconds before
TENANT: Final = "tests.sample.count_keyed"  # its keys take turns
KEYS, KEY_LIMIT, KEYED_JOBS = 200, 2, 4_000
KEYED_PROCESSES, THREADS = 8, 4
SHORTEST, LONGEST = 0.2, 0.6  # seconds that one of these jobs takes
RATED: Final = "tests.sample.keep"
BACKLOG: Final = """
INSERT INTO jobqueue_queuedjob (job_type, queue, priority, data, limit_key, run_after)
SELECT %(type)s, 'default', 0, '{}', %(type)s || ' big',
       clock_timestamp() - interval '1 hour' + n * interval '1 us'
  FROM generate_series(1, %(count)s) AS n
"""
LONE: Final = """
SELECT extract(epoch FROM lone.started_at - lone.created_at)::float8 * 1000,
       (SELECT count(*) FROM jobqueue_archivedjob AS job
         WHERE job.limit_key = %(big)s
           AND job.started_at > lone.created_at AND job.started_at < lone.started_at)
  FROM jobqueue_archivedjob AS lone
 WHERE lone.limit_key <> %(big)s
"""
DONE: Final = "SELECT count(*) FROM jobqueue_archivedjob WHERE limit_key <> %(big)s"
# A rate counts claims; the archive has when handlers began, some milliseconds later.
NOTE_STARTS: Final = """
CREATE UNLOGGED TABLE bench_start (at timestamptz);
CREATE FUNCTION bench_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO bench_start VALUES (NEW.started_at);
  RETURN NULL;
END $$;
CREATE TRIGGER bench_note AFTER UPDATE OF status ON jobqueue_queuedjob FOR EACH ROW
  WHEN (NEW.status = 'running') EXECUTE FUNCTION bench_note();
"""
FORGET: Final = "DROP FUNCTION bench_note() CASCADE; DROP TABLE bench_start"
Figures = dict[str, float]


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=1_000_000, help="of the tenant")
    parser.add_argument("--rounds", type=int, default=60, help="lone jobs")
    parser.add_argument(
        "--page", action="store_true", help="keep the figures for the documentation"
    )
    options = parser.parse_args()
    with own_database("fairness"):
        found = {
            "alone": tenant(0, options.rounds),
            "tenant": tenant(options.waiting, options.rounds),
            "weights": weights(),
            "rate": rate(),
            "keys": keys(),
        }
    content = {
        "date": date.today().isoformat(),
        "waiting": options.waiting,
        "rounds": options.rounds,
        **found,
    }
    print(table(content))
    if options.page:
        keep(RESULTS, content)


def tenant(waiting: int, rounds: int) -> Figures:
    """Lone jobs of other tenants beside so many of one."""
    clear()
    execute(BACKLOG, {"type": TENANT, "count": waiting})
    execute("VACUUM ANALYZE jobqueue_queuedjob")
    from tests.sample.jobs import count_keyed

    draw = random.Random(0)
    with workers("--processes", "1", "--threads", "4"):
        until(lambda: count_workers() == 1)
        time.sleep(SETTLING)
        for round in range(rounds):
            count_keyed.enqueue(f"small {round}")
            time.sleep(draw.uniform(0.05, 0.1))
        until(lambda: fetch(DONE, {"big": f"{TENANT} big"}) == [(rounds,)])
        ((left,),) = fetch("SELECT count(*) FROM jobqueue_queuedjob")
    assert left or not waiting, "the backlog ended too soon"
    rows = fetch(LONE, {"big": f"{TENANT} big"})
    waits = [wait for wait, _ in rows]
    return {
        "p50": median(waits),
        "p99": percentile(waits, 99),
        "before": median(before for _, before in rows),
        "most_before": max(before for _, before in rows),
    }


def weights() -> Figures:
    """The share of each queue in the first starts, in percent."""
    clear()
    from tests.sample.jobs import keep

    for queue in WEIGHTS:
        keep.using(queue=queue).enqueue_many({"a": n} for n in range(STARTS))
    execute("VACUUM ANALYZE jobqueue_queuedjob")
    given = ",".join(f"{queue}={weight}" for queue, weight in WEIGHTS.items())
    with workers("--processes", "1", "--threads", "4", "--queue-weights", given):
        count = "SELECT count(*) >= %(starts)s FROM jobqueue_archivedjob"
        until(lambda: fetch(count, {"starts": STARTS}) == [(True,)])
    first = fetch(
        "SELECT queue FROM jobqueue_archivedjob ORDER BY started_at LIMIT %(starts)s",
        {"starts": STARTS},
    )
    counted = Counter(queue for (queue,) in first)
    return {queue: 100 * counted[queue] / STARTS for queue in WEIGHTS}


def rate() -> Figures:
    """How much of a rate many processes use, and what waiting for it costs."""
    clear()
    execute(NOTE_STARTS)
    from django_jobqueue import operations
    from tests.sample.jobs import keep

    operations.override(keep, rate=f"{LIMIT}/s burst {BURST}")
    keep.enqueue_many({"a": n} for n in range(LIMIT * (SECONDS + SETTLING + 10)))
    execute("VACUUM ANALYZE jobqueue_queuedjob")
    transactions = (
        "SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database "
        "WHERE datname = current_database()"
    )
    with workers("--processes", str(PROCESSES), "--threads", "1"):
        until(lambda: count_workers() == PROCESSES)
        time.sleep(SETTLING)
        ((began, before),) = fetch(f"SELECT clock_timestamp(), ({transactions})")
        time.sleep(SECONDS)
        ((ended, after),) = fetch(f"SELECT clock_timestamp(), ({transactions})")
    operations.override(keep, rate=None)
    moments = [
        at.timestamp() for (at,) in fetch("SELECT at FROM bench_start ORDER BY at")
    ]
    execute(FORGET)
    seconds = (ended - began).total_seconds()
    inside = sum(began.timestamp() <= at < ended.timestamp() for at in moments)
    allowed = (LIMIT - BURST + 1) * seconds
    return {
        "used": 100 * inside / allowed,
        "most": most_in_a_second(moments),
        "statements": (after - before) / seconds / PROCESSES,
        "gap": max(later - sooner for sooner, later in pairwise(moments)) * 1e3,
    }


def keys() -> Figures:
    """How well slots are used by jobs of keys of which some have many, most have few.

    In percent of the time of all slots; the most of one key that ran at once.
    """
    clear()
    from tests.sample.jobs import timed_notes, write_keyed

    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        journal = f"{folder}/journal"
        write_keyed.enqueue_many(
            {
                "journal": journal,
                "key": int(KEYS * draw.random() ** 1.5),
                "seconds": draw.uniform(SHORTEST, LONGEST),
            }
            for _ in range(KEYED_JOBS)
        )
        execute("VACUUM ANALYZE jobqueue_queuedjob")
        given = ("--processes", str(KEYED_PROCESSES), "--threads", str(THREADS))
        done = "SELECT count(*) FROM jobqueue_archivedjob"
        with workers(*given):
            until(lambda: fetch(done) == [(KEYED_JOBS,)])
        notes = [(at, what, key) for at, (what, key, *_) in timed_notes(journal)]
    found = idle_slots(notes, slots=KEYED_PROCESSES * THREADS, limit=KEY_LIMIT)
    return {"idle": 100 * found.share, "most": found.most}


def most_in_a_second(moments: list[float]) -> int:
    """The most of these, which are sorted, in any window of a second."""
    first = most = 0
    for last, at in enumerate(moments):
        while moments[first] <= at - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


@contextmanager
def workers(*flags: str) -> Iterator[None]:
    """A host with these flags, which is killed at the end."""
    from tests.support.commands import worker_environment

    host = subprocess.Popen(
        [sys.executable, "-m", "django", "runworkers", "--async-slots", "0", *flags],
        env=worker_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        host.terminate()
        host.wait(60)


def count_workers() -> int:
    """How many workers are there."""
    ((count,),) = fetch("SELECT count(*) FROM jobqueue_worker WHERE state = 'running'")
    return int(count)


def clear() -> None:
    """As at the beginning."""
    execute(
        "TRUNCATE jobqueue_queuedjob, jobqueue_archivedjob, jobqueue_bucket, "
        "jobqueue_worker"
    )


def execute(statement: str, params: Mapping[str, Any] | None = None) -> None:
    """Run it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def fetch(statement: str, params: Mapping[str, Any] | None = None) -> list[Any]:
    """The rows of a query."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()


def until(is_over: Any) -> None:
    """Wait for it. Raises TimeoutError."""
    last = time.monotonic() + PATIENCE
    while not is_over():
        if time.monotonic() > last:
            raise TimeoutError
        time.sleep(0.2)


def table(content: Mapping[str, Any]) -> str:
    """The figures beside what we aim at, as Markdown."""
    alone, beside = content["alone"], content["tenant"]
    shares, rate, keys = content["weights"], content["rate"], content["keys"]
    total = sum(WEIGHTS.values())
    off = max(
        abs(shares[queue] / (100 * weight / total) - 1)
        for queue, weight in WEIGHTS.items()
    )
    rows = [
        ("", "measured", "target"),
        ("---", "---:", "---:"),
        (
            f"Wait of one tenant's job beside {content['waiting']:,} of another one, "
            "p50",
            f"{number(beside['p50'])} ms; alone {number(alone['p50'])} ms",
            "",
        ),
        ("p99", f"{number(beside['p99'])} ms; alone {number(alone['p99'])} ms", ""),
        (
            "jobs of the other tenant that start before it, with 4 slots",
            f"{number(beside['before'])}; at most {number(beside['most_before'])}",
            "one lap: 4",
        ),
        (
            f"Queues of {' : '.join(map(str, WEIGHTS.values()))}, {STARTS:,} starts: "
            "shares in percent",
            " : ".join(f"{shares[queue]:.2f}" for queue in WEIGHTS),
            " : ".join(f"{100 * weight / total:.2f}" for weight in WEIGHTS.values()),
        ),
        ("the farthest off", f"{100 * off:.2f} %", "2 %"),
        (
            f"A rate of {LIMIT} a second, burst {BURST}, {PROCESSES} processes: used",
            f"{rate['used']:.1f} %",
            "98 %",
        ),
        ("most starts in any second", f"{rate['most']:,}", f"{LIMIT}"),
        (
            "transactions a second and worker",
            number(rate["statements"]),
            "at most 100",
        ),
        (
            f"{KEYS} keys, {KEY_LIMIT} jobs of each at once, "
            f"{KEYED_PROCESSES * THREADS} slots: idle though a key permits a job",
            f"{keys['idle']:.2f} %",
            "less than 1 %",
        ),
        ("most jobs of one key at once", f"{keys['most']}", f"{KEY_LIMIT}"),
    ]
    return "\n".join(map(line, rows))


def section() -> str:
    """What the page of the documentation says of the last run with ``--page``."""
    return section_of(RESULTS, _in_words)


def _in_words(content: Mapping[str, Any]) -> str:
    return f"{table(content)}\n\nOn {content['date']}, {content['rounds']} lone jobs."


if __name__ == "__main__":
    main()
