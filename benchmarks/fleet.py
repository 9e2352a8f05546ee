"""What an idle fleet costs: processes of one host, and several hosts, beside one.

All fleets are there at once, each with a database of its own on one embedded server,
and get lone jobs in turns. Prints for each fleet the CPU of its workers and of the
server for a job, the wait from the commit to the handler, connections and memory; then
how fast backlogs are drained. For fleets with fewer rounds: ``--rounds 3``.

    python -m benchmarks.fleet --fleets 1x1,1x32,8x4 --rounds 20
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median
from typing import Final

from benchmarks.enqueuer import Enqueuer
from benchmarks.processes import Workers, memory, wait_for
from benchmarks.server import exclusive_folder, running
from benchmarks.site import Site, Trial
from benchmarks.systems import OURS
from benchmarks.systems.base import Load

JOBS: Final = 40  # in a round, 20 to 30 ms apart
BACKLOG: Final = 50_000  # beside it the start of a process is small
PATIENCE: Final = 60.0  # seconds
SETTLING: Final = 5.0  # seconds


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
    options = parser.parse_args()
    with exclusive_folder() as folder, running(folder) as server:
        site = Site(server, folder)
        measure_idle(site, options.fleets.split(","), options.rounds)
        if options.drains:
            measure_drains(site, [*map(int, options.drains.split(","))], options.rounds)


def measure_idle(site: Site, names: Sequence[str], rounds: int) -> None:
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
        print("hosts x processes    CPU, ms/job    wait, ms    connections    PSS, MiB")
        for fleet in fleets:
            cpu = _beside(fleet.cpu, fleets[0].cpu)
            wait = _beside(fleet.waits, fleets[0].waits)
            connections = fleet.trial.database.connections() - 1  # the enqueuer's
            print(
                f"{fleet.name:>17}    {cpu}    {wait}    {connections:>4}    "
                f"{fleet.pss():.0f}",
                flush=True,
            )


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


def measure_drains(site: Site, processes: Sequence[int], rounds: int) -> None:
    """Backlogs that are there when the workers start, in turns."""
    rates: dict[int, list[float]] = {number: [] for number in processes}
    cpu: dict[int, list[float]] = {number: [] for number in processes}
    for _ in range(max(1, rounds // 3)):
        for number in processes:
            with site.trial(OURS) as trial:
                trial.fill(BACKLOG)
                trial.analyse()
                before = trial.database.cpu()
                workers = trial.start(Load.DRAIN, number)
                done = partial(trial.journal.has, BACKLOG)
                wait_for(done, PATIENCE, workers, "the backlog")
                at = [record.at for record in trial.journal.records()]
                rates[number].append(BACKLOG / (max(at) - min(at)) * 1e9)
                cpu[number].append((trial.database.cpu() - before) / BACKLOG * 1e6)
    print("processes    drain, jobs/s    CPU of the server, µs/job")
    for number in processes:
        rate = _beside(rates[number], rates[processes[0]], digits=0)
        print(f"{number:>9}    {rate}    {_beside(cpu[number], cpu[processes[0]])}")


def _beside(values: Sequence[float], first: Sequence[float], digits: int = 2) -> str:
    ratio = median(v / f for v, f in zip(values, first, strict=True))
    return f"{median(values):.{digits}f} ({ratio:.2f} ×)"


if __name__ == "__main__":
    main()
