"""What an idle fleet costs: processes of one host, and several hosts, beside one.

All fleets are there at once, each with a database of its own on one embedded server,
and get lone jobs in turns. Prints for each fleet the CPU of its workers and of the
server for a job, the wait from the commit to the handler, connections and memory; then
how fast backlogs are drained. Workers of ``1x1x1000`` have seen jobs in 1,000 lanes.
For fleets with fewer rounds: ``--rounds 3``; ``--page`` keeps the figures for the
documentation.

    python -m benchmarks.fleet --fleets 1x1,1x32,8x4,1x1x1000 --rounds 20
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from random import Random
from statistics import median
from typing import Any, Final

from benchmarks.drains import long_drain
from benchmarks.enqueuer import Enqueuer
from benchmarks.figures import number
from benchmarks.kept import keep, place_of, section_of
from benchmarks.processes import Workers, memory, wait_for
from benchmarks.server import exclusive_folder, running
from benchmarks.site import Site, Trial
from benchmarks.systems import OURS
from benchmarks.systems.base import Load
from benchmarks.tables import line

RESULTS: Final = place_of("fleet")
JOBS: Final = 40  # in a round, 20 to 30 ms apart
BACKLOG: Final = 200_000
PATIENCE: Final = 60.0  # seconds
SETTLING: Final = 5.0  # seconds
QUEUES: Final = 100  # of many lanes
FILL_LANES: Final = f"""
INSERT INTO jobqueue_queuedjob (job_type, queue, priority, data)
SELECT 'benchmarks.apps.work', 'tenant ' || n % {QUEUES}, n / {QUEUES},
       jsonb_build_object('number', -1 - n, 'ms', 0)
  FROM generate_series(0, {{lanes}} - 1) AS n
"""
Figures = dict[str, float]


@dataclass
class Fleet:
    """Workers of some hosts, and what was measured of them."""

    name: str
    trial: Trial
    hosts: list[Workers]
    enqueuer: Enqueuer
    enqueued: int = 0
    before: int = 0  # jobs that gave it its lanes
    waits: list[float] = field(default_factory=list)  # ms, p50 of each round
    cpu: list[float] = field(default_factory=list)  # ms a job, in each round

    def round(self, pauses: Sequence[float]) -> None:
        """Give it lone jobs."""
        first, self.enqueued = self.enqueued, self.enqueued + len(pauses)
        before = self._cpu()
        committed = self.enqueuer.paced(first, list(pauses))
        done = partial(self.trial.journal.has, self.before + self.enqueued)
        wait_for(done, PATIENCE, self.hosts[0], "the jobs")
        starts = self.trial.journal.starts()
        waits = [starts[first + n][0] - at for n, at in enumerate(committed)]
        self.waits.append(median(waits) / 1e6)
        self.cpu.append((self._cpu() - before) / len(pauses) * 1e3)

    def pss(self) -> float:
        """Memory of all processes, in MiB."""
        return sum(memory(workers.pids()).pss for workers in self.hosts)

    def _cpu(self) -> float:
        """CPU seconds of its workers, and of the server for all fleets."""
        return self.trial.database.cpu() + sum(w.cpu() for w in self.hosts)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--fleets",
        default="1x1,1x4,1x32,8x4,1x1x1000",
        help="hosts x processes x lanes",
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--drains", default="1,2,4,8", help="processes of one host")
    parser.add_argument(
        "--page", action="store_true", help="keep the figures for the documentation"
    )
    options = parser.parse_args()
    content: dict[str, Any] = {"date": date.today().isoformat(), "drains": {}}
    with exclusive_folder() as folder, running(folder) as server:
        site = Site(server, folder)
        names = options.fleets.split(",")
        content["fleets"] = measure_idle(site, names, options.rounds)
        if options.drains:
            numbers = [*map(int, options.drains.split(","))]
            content["drains"] = measure_drains(site, numbers, options.rounds)
    print(tables(content))
    if options.page:
        keep(RESULTS, content)


def measure_idle(site: Site, names: Sequence[str], rounds: int) -> dict[str, Figures]:
    """Lone jobs for each fleet in turns."""
    draw = Random(0)
    with ExitStack() as stack:
        fleets = [begin(stack, site, name) for name in names]
        for number in range(rounds + 1):
            for fleet in draw.sample(fleets, len(fleets)):
                fleet.round([draw.uniform(0.02, 0.03) for _ in range(JOBS)])
            if not number:  # the first one is to warm up
                time.sleep(SETTLING)
                for fleet in fleets:
                    fleet.waits, fleet.cpu = [], []
        return {
            fleet.name: {
                "cpu": median(fleet.cpu),
                "cpu_ratio": _ratio(fleet.cpu, fleets[0].cpu),
                "wait": median(fleet.waits),
                "wait_ratio": _ratio(fleet.waits, fleets[0].waits),
                "connections": fleet.trial.database.connections() - 1,  # the enqueuer's
                "pss": fleet.pss(),
            }
            for fleet in fleets
        }


def begin(stack: ExitStack, site: Site, name: str) -> Fleet:
    """Start the workers of a fleet, and wait until one has run a job."""
    hosts, processes, lanes = shape_of(name)
    trial = stack.enter_context(site.trial(OURS))
    workers = [trial.start(Load.PICKUP, processes) for _ in range(hosts)]
    fleet = Fleet(name, trial, workers, stack.enter_context(trial.enqueuer()))
    ready = (
        f"SELECT count(*) = {hosts * processes} FROM jobqueue_worker WHERE listening"
    )
    wait_for(lambda: trial.database.number(ready), PATIENCE, workers[0], "idle workers")
    if lanes > 1:
        fleet.before = lanes
        trial.database.connection.execute(FILL_LANES.format(lanes=lanes))
        done = partial(trial.journal.has, lanes)
        wait_for(done, PATIENCE, workers[0], "the jobs of all lanes")
    return fleet


def shape_of(name: str) -> tuple[int, int, int]:
    """Hosts, processes of each, and lanes."""
    hosts, processes, *lanes = map(int, name.split("x"))
    return hosts, processes, lanes[0] if lanes else 1


def measure_drains(
    site: Site, processes: Sequence[int], rounds: int
) -> dict[str, Figures]:
    """Backlogs that are there when the workers start, in turns; from when they are at
    work to the end."""
    rates: dict[int, list[float]] = {number: [] for number in processes}
    cpu: dict[int, list[float]] = {number: [] for number in processes}
    for _ in range(max(1, rounds // 3)):
        for count in processes:
            with site.trial(OURS) as trial:
                found = long_drain(trial, BACKLOG, count)
            rates[count].append(found.starts_per_s)
            cpu[count].append(found.server_us)
    first = processes[0]
    return {
        str(count): {
            "rate": median(rates[count]),
            "rate_ratio": _ratio(rates[count], rates[first]),
            "cpu": median(cpu[count]),
            "cpu_ratio": _ratio(cpu[count], cpu[first]),
        }
        for count in processes
    }


def _ratio(values: Sequence[float], first: Sequence[float]) -> float:
    return median(v / f for v, f in zip(values, first, strict=True))


def tables(content: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    idle = [
        (
            "Idle processes",
            "CPU of workers and server, a job",
            "wait of a lone job, p50",
            "connections",
            "PSS",
        ),
        ("---", *["---:"] * 4),
    ]
    for name, row in content["fleets"].items():
        hosts, processes, lanes = shape_of(name)
        words = f"{hosts} host{'s' * (hosts > 1)} of {processes}"
        idle.append(
            (
                f"{words}, {lanes:,} lanes" if lanes > 1 else words,
                f"{row['cpu']:.2f} ms ({row['cpu_ratio']:.2f} ×)",
                f"{row['wait']:.2f} ms ({row['wait_ratio']:.2f} ×)",
                f"{row['connections']}",
                f"{row['pss']:.0f} MiB",
            )
        )
    drains = [
        ("Processes that drain", "jobs/s", "CPU of the server, a job"),
        ("---", "---:", "---:"),
    ]
    for count, row in content["drains"].items():
        drains.append(
            (
                count,
                f"{number(row['rate'])} ({row['rate_ratio']:.2f} ×)",
                f"{row['cpu']:.1f} µs ({row['cpu_ratio']:.2f} ×)",
            )
        )
    return "\n".join([*map(line, idle), "", *map(line, drains)])


def section() -> str:
    """What the page of the documentation says of the last run with ``--page``."""
    return section_of(RESULTS, _in_words)


def _in_words(content: Mapping[str, Any]) -> str:
    return (
        f"{tables(content)}\n\nOn {content['date']}; the ratios are those to the first "
        "row, within a round."
    )


if __name__ == "__main__":
    main()
