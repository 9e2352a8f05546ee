"""What a port for metrics costs a drain: the same jobs with one and without, in turns.

In a database of its own on the server of the test suite. In a block jobs are enqueued,
and a ``runworkers --drain`` in processes of its own works them off; with a port, it is
scraped once a second meanwhile. Prints the rates, from the first start of a job to the
end of the last one, and their ratio.

    python -m benchmarks.metrics_port --rounds 8
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

BLOCK: Final = 40_000  # jobs
SLOWEST: Final = 120.0  # seconds for a block
KINDS: Final = ("without", "with")
FLAGS: Final = ("--drain", "--threads", "4", "--async-slots", "0")
ADDRESS: Final = re.compile(rb"Metrics at (\S+)")


def main() -> None:
    """Measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=BLOCK)
    options = parser.parse_args()

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    from django.db import connection

    connection.settings_dict["TEST"]["NAME"] = f"jobqueue_metrics_port_{os.getpid()}"
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        report(measure(options.rounds, options.jobs))
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def measure(rounds: int, jobs: int) -> dict[str, list[float]]:
    """Jobs a second of each block, by kind."""
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    drain((), jobs)  # warms up
    for turn in range(rounds):
        for kind in KINDS if turn % 2 else reversed(KINDS):
            flags = ("--metrics-port", "0") if kind == "with" else ()
            rates[kind].append(drain(flags, jobs))
    return rates


def drain(flags: tuple[str, ...], jobs: int) -> float:
    """Work off so many jobs; returns how many a second."""
    from django.db import connection

    from tests.conftest import worker_environment
    from tests.sample.jobs import keep

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobqueue_queuedjob, jobqueue_archivedjob")
        keep.enqueue_many({"a": number} for number in range(jobs))
        cursor.execute("ANALYZE jobqueue_queuedjob")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as file:
            workers = subprocess.Popen(
                [sys.executable, "-m", "django", "runworkers", *FLAGS, *flags],
                env=worker_environment(),
                stdout=file,
                stderr=file,
            )
            ended = threading.Event()
            scraping = threading.Thread(target=scrape, args=[log, ended])
            if flags:
                scraping.start()
            try:
                code = workers.wait(SLOWEST)
            finally:
                ended.set()
                workers.kill()
            if flags:
                scraping.join()
        if code:
            raise RuntimeError(log.read_text())
    return rate(connection, jobs)


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


def report(rates: dict[str, list[float]]) -> None:
    """Print the medians, and the ratio of each pair of blocks."""
    for kind, values in rates.items():
        print(f"{kind:8} {statistics.median(values):10,.0f} jobs/s")
    ratios = [on / off for off, on in zip(*rates.values(), strict=True)]
    print(f"ratio    {statistics.median(ratios):10.3f}", [round(r, 3) for r in ratios])


if __name__ == "__main__":
    main()
