"""What uniqueness costs: enqueues that replace, debounce or throttle, and plain ones.

Blocks of each kind take turns, in a database of its own on the server of the test
suite; each enqueue is a transaction. Prints the enqueues per second of each kind, and
the ratio to plain ones. ``--copy`` also times ``enqueue_many`` of plain jobs.

    python -m benchmarks.unique_enqueues --jobs 100000 --kinds plain,debounced
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from benchmarks.own_database import own_database

KEYS: Final = 1_000
BLOCK: Final = 500  # enqueues of a kind at a time
COPIED: Final = 20_000  # jobs of one enqueue_many
KINDS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "until started": {"unique_until": "started", "on_duplicate": "return"},
    "replaced": {"on_duplicate": "replace"},
    "debounced": {"debounce": 30, "debounce_max": 300},
    "window": {"unique_until": 300, "on_duplicate": "return"},
}


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--copy", action="store_true")
    options = parser.parse_args()

    with own_database("unique_enqueues"):
        enqueues = {kind: enqueue_of(kind) for kind in options.kinds.split(",")}
        report(measure(enqueues, options.jobs))
        if options.copy:
            print(f"enqueue_many  {COPIED / copy_plain():10,.0f} jobs/s")


def enqueue_of(kind: str) -> Callable[[int], Any]:
    """A function that enqueues the call with this number."""
    from django_jobqueue import job

    unique = {"unique": ("key",)} if KINDS[kind] else {}

    @job(name=f"bench.{kind.replace(' ', '_')}", **unique, **KINDS[kind])
    def index(key: int, number: int) -> None: ...

    return lambda number: index.enqueue(number % KEYS, number)


def measure(
    enqueues: dict[str, Callable[[int], Any]], jobs: int
) -> dict[str, list[float]]:
    """The enqueues per second of each block, by kind."""
    rates: dict[str, list[float]] = {kind: [] for kind in enqueues}
    for enqueue in enqueues.values():
        enqueue(0)  # declares its type
    for first in range(0, jobs, BLOCK):
        for kind, enqueue in enqueues.items():
            began = time.perf_counter()
            for number in range(first, first + BLOCK):
                enqueue(number)
            rates[kind].append(BLOCK / (time.perf_counter() - began))
    return rates


def copy_plain() -> float:
    """Seconds of one ``enqueue_many`` of plain jobs, in the median."""
    from django.db import connection

    from django_jobqueue import job

    @job(name="bench.copied")
    def index(key: int, number: int) -> None: ...

    index.enqueue(0, 0)
    calls = [{"key": number % KEYS, "number": number} for number in range(COPIED)]
    seconds = []
    for _ in range(5):
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE jobqueue_queuedjob")
        began = time.perf_counter()
        index.enqueue_many(calls)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def report(rates: dict[str, list[float]]) -> None:
    """Print what was measured: the mean of all blocks, so that none is left out."""
    means = {kind: statistics.harmonic_mean(found) for kind, found in rates.items()}
    for kind, rate in means.items():
        ratio = f"{rate / means['plain']:6.2f} ×" if "plain" in means else ""
        print(f"{kind:13} {rate:10,.0f} enqueues/s {ratio}")


if __name__ == "__main__":
    main()
