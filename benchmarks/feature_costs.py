"""What each feature costs a drain: the same jobs without and with it, in turns.

In a database of its own on the server of the test suite. In a block jobs are enqueued,
and a ``runworkers --drain`` in processes of its own works them off; with a port for
metrics, it is scraped once a second meanwhile. Prints the rates, from the first start
of a job to the end of the last one, and the CPU of all processes for a job, without
that of a host with one job alone, which the first rounds measure; and the ratios to
the kind ``off`` of the same round. On a busy machine those of the CPU time are better.
Five rounds take some five minutes.

    python -m benchmarks.feature_costs --rounds 5 --kinds off,metrics,sentry
"""

from __future__ import annotations

import argparse
import contextlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from benchmarks.figures import number
from benchmarks.kept import keep, place_of, section_of
from benchmarks.own_database import own_database
from benchmarks.tables import line

RESULTS: Final = place_of("feature_costs")
BLOCK: Final = 40_000  # jobs: fewer drown in what a host costs by itself
SMALLER: Final = {"sentry": 10}  # a tenth of the jobs: each takes ten times as long
IDLE_ROUNDS: Final = 3
SLOWEST: Final = 120.0  # seconds for a block
KINDS: Final[dict[str, tuple[str, ...]]] = {  # with their flags
    "off": (),
    "metrics": ("--metrics-port", "0"),
    "successes": ("--log-successes", "true"),
    "observer": (),
    "opentelemetry": (),
    "sentry": (),
    "recycling": ("--max-jobs", "10000"),
    "alerts": (),
}
WORDS: Final = {
    "off": "none",
    "metrics": "`--metrics-port`, scraped each second",
    "successes": "`--log-successes`",
    "observer": "an observer that does nothing",
    "opentelemetry": "OpenTelemetry, spans thrown away",
    "sentry": "Sentry, a trace of each job",
    "recycling": "`--max-jobs 10000`",
    "alerts": "`ALERTS` by mail",
}
FLAGS: Final = ("--drain", "--threads", "4", "--async-slots", "0")
ADDRESS: Final = re.compile(rb"Metrics at (\S+)")


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=BLOCK)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument(
        "--page", action="store_true", help="keep the figures for the documentation"
    )
    options = parser.parse_args()

    with own_database("feature_costs"):
        kinds = options.kinds.split(",")
        rows = figures(measure(kinds, options.rounds, options.jobs))
        report(rows)
        if options.page:
            about = {"date": date.today().isoformat(), "rounds": options.rounds}
            content = {**about, "jobs": options.jobs, "rows": rows}
            keep(RESULTS, content)


def measure(
    kinds: Sequence[str], rounds: int, jobs: int
) -> dict[str, list[tuple[float, float]]]:
    """Jobs a second, and microseconds of CPU for a job, of each block, by kind."""
    blocks: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    idle: dict[str, list[float]] = {kind: [] for kind in kinds}
    drain(kinds[0], block_size(kinds[0], jobs))  # warms up
    for turn in range(rounds):
        first = turn % len(kinds)
        for kind in [*kinds[first:], *kinds[:first]]:
            if turn < IDLE_ROUNDS:
                idle[kind].append(drain(kind, 1)[1])
            blocks[kind].append(drain(kind, block_size(kind, jobs)))
    return {
        kind: [
            (rate, (cpu - statistics.median(idle[kind])) / block_size(kind, jobs) * 1e6)
            for rate, cpu in blocks[kind]
        ]
        for kind in kinds
    }


def block_size(kind: str, jobs: int) -> int:
    """How many jobs a block of this kind has, if that of the others has so many."""
    return max(1, jobs // SMALLER.get(kind, 1))


def drain(kind: str, jobs: int) -> tuple[float, float]:
    """Work off so many jobs; returns how many a second, and the seconds of CPU."""
    from django.db import connection

    from tests.sample.jobs import keep
    from tests.support.commands import worker_environment

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobqueue_queuedjob, jobqueue_archivedjob")
        keep.enqueue_many({"a": number} for number in range(jobs))
        cursor.execute("ANALYZE jobqueue_queuedjob")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as file:
            workers = subprocess.Popen(
                [sys.executable, "-m", "django", "runworkers", *FLAGS, *KINDS[kind]],
                env={
                    **worker_environment(),
                    "DJANGO_SETTINGS_MODULE": "benchmarks.feature_settings",
                    "BENCHMARKED_FEATURE": kind,
                },
                stdout=file,
                stderr=file,
            )
            ended = threading.Event()
            scraping = threading.Thread(target=scrape, args=[log, ended])
            if kind == "metrics":
                scraping.start()
            try:
                code = workers.wait(SLOWEST)
            finally:
                ended.set()
                workers.kill()
            if kind == "metrics":
                scraping.join()
        if code:
            raise RuntimeError(log.read_text())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return rate(connection, jobs), cpu


def scrape(log: Path, ended: threading.Event) -> None:
    """Ask for the metrics once a second."""
    while not ended.wait(1.0):
        if match := ADDRESS.search(log.read_bytes()):
            with contextlib.suppress(OSError), urlopen(match[1].decode()) as answer:
                answer.read()


def rate(connection: Any, jobs: int) -> float:
    """Jobs a second, from the first start to the last end."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), extract(epoch FROM max(finished_at) - min(started_at))"
            " FROM jobqueue_archivedjob WHERE status = 'succeeded'"
        )
        ((count, seconds),) = cursor.fetchall()
    if count != jobs:
        raise RuntimeError(f"{count} of {jobs} jobs succeeded")
    return jobs / float(seconds)


def figures(
    found: Mapping[str, Sequence[tuple[float, float]]],
) -> dict[str, dict[str, float]]:
    """By kind: medians, and the median of the ratios to the first kind of the round."""
    base = next(iter(found.values()))
    rows = {}
    for kind, blocks in found.items():
        rate, cpu = (statistics.median(values) for values in zip(*blocks, strict=True))
        pairs = list(zip(base, blocks, strict=True))
        rows[kind] = {
            "rate": rate,
            "cpu": cpu,
            "rate_ratio": statistics.median(on[0] / off[0] for off, on in pairs),
            "cpu_ratio": statistics.median(on[1] / off[1] for off, on in pairs),
        }
    return rows


def report(rows: Mapping[str, Mapping[str, float]]) -> None:
    """Print them."""
    print(f"{'':14}{'jobs/s':>10}{'':9}{'CPU for a job':>18}")
    for kind, row in rows.items():
        print(
            f"{kind:14}{row['rate']:10,.0f} {row['rate_ratio']:6.2f} × "
            f"{row['cpu']:12.2f} µs {row['cpu_ratio']:6.2f} ×"
        )


def section() -> str:
    """What the page of the documentation says of the last run with ``--page``."""
    return section_of(RESULTS, _in_words)


def _in_words(content: Mapping[str, Any]) -> str:
    head = ("", "jobs/s", "beside none", "CPU of the workers, a job", "beside none")
    rows = [line(head), line(("---", *["---:"] * 4))]
    rows += [
        line(
            (
                WORDS.get(kind, kind),
                number(row["rate"]),
                f"{row['rate_ratio']:.2f} ×",
                f"{row['cpu']:.1f} µs",
                f"{row['cpu_ratio']:.2f} ×",
            )
        )
        for kind, row in content["rows"].items()
    ]
    return "\n".join(rows) + (
        f"\n\nMedians of {content['rounds']} rounds of {content['jobs']:,} empty jobs, "
        f"a tenth of them with Sentry, on {content['date']}; the ratios are\nthose "
        "within a round."
    )


if __name__ == "__main__":
    main()
