"""What an idle fleet costs: processes of one host, and several hosts, beside one.

All fleets are there at once, each with a database of its own on one embedded server,
and get lone jobs in turns. Prints for each fleet the CPU of its workers and of the
server for a job, the wait from the commit to the handler, connections and memory; then
how fast backlogs are drained. For fleets with fewer rounds: ``--rounds 3``; ``--page``
keeps the figures for the documentation.

    python -m benchmarks.fleet --fleets 1x1,1x32,8x4 --rounds 20
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

from benchmarks.enqueuer import Enqueuer
from benchmarks.environment import ROOT
from benchmarks.figures import number
from benchmarks.processes import Workers, memory, wait_for
from benchmarks.server import exclusive_folder, running
from benchmarks.site import Site, Trial
from benchmarks.systems import OURS
from benchmarks.systems.base import Load
from benchmarks.tables import line

RESULTS: Final = ROOT / "benchmarks" / "results" / "fleet.json"
JOBS: Final = 40  # in a round, 20 to 30 ms apart
BACKLOG: Final = 200_000
STARTING: Final = 20_000  # jobs of it, until all processes are at work
PATIENCE: Final = 60.0  # seconds
SETTLING: Final = 5.0  # seconds
Figures = dict[str, float]


@dataclass
class Fleet:
    """Workers of some hosts, and what was measured of them."""

    name: str
    trial: Trial
    hosts: list[Workers]
    enqueuer: Enqueuer
    enqueued: int = 0
    waits: list[float] = field(default_factory=list)  # ms, p50 of each round
    cpu: list[float] = field(default_factory=list)  # ms a job, in each round

    def round(self, pauses: Sequence[float]) -> None:
        """Give it lone jobs."""
        first, self.enqueued = self.enqueued, self.enqueued + len(pauses)
        before = self._cpu()
        committed = self.enqueuer.paced(first, list(pauses))
        done = partial(self.trial.journal.has, self.enqueued)
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
        "--fleets", default="1x1,1x4,1x32,8x4", help="hosts x processes"
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
        RESULTS.write_text(json.dumps(content, indent=1) + "\n")


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
    hosts, processes = map(int, name.split("x"))
    trial = stack.enter_context(site.trial(OURS))
    workers = [trial.start(Load.PICKUP, processes) for _ in range(hosts)]
    fleet = Fleet(name, trial, workers, stack.enter_context(trial.enqueuer()))
    ready = (
        f"SELECT count(*) = {hosts * processes} FROM jobqueue_worker WHERE listening"
    )
    wait_for(lambda: trial.database.number(ready), PATIENCE, workers[0], "idle workers")
    return fleet


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
                trial.fill(BACKLOG)
                trial.analyse()
                workers = trial.start(Load.DRAIN, count)
                began = partial(trial.journal.has, STARTING)
                wait_for(began, PATIENCE, workers, "the first jobs")
                before, begun = trial.database.cpu(), len(trial.journal)
                done = partial(trial.journal.has, BACKLOG)
                wait_for(done, PATIENCE, workers, "the backlog")
                after = trial.database.cpu()
                at = [record.at for record in trial.journal.records(since=begun)]
                rates[count].append(len(at) / (max(at) - min(at)) * 1e9)
                cpu[count].append((after - before) / len(at) * 1e6)
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
        hosts, processes = name.split("x")
        idle.append(
            (
                f"{hosts} host{'s' * (hosts != '1')} of {processes}",
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


def section(path: Path = RESULTS) -> str:
    """What the page of the documentation says of the last run with ``--page``."""
    if not path.exists():
        return "Not run yet."
    content = json.loads(path.read_text())
    return (
        f"{tables(content)}\n\nOn {content['date']}; the ratios are those to the first "
        "row, within a round."
    )


if __name__ == "__main__":
    main()
