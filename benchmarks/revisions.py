"""This checkout beside another revision of it: did a change cost anything?

Both have databases of their own on one embedded server. An idle worker of each gets
lone jobs in turns, and backlogs are drained in turns. Prints the wait from the commit
to the handler, the rate of the drains, the CPU of workers and server for a job and the
memory of all processes, and the median, over the rounds, of their ratios to those of
the revision, with the quartiles. With ``--processes`` also long drains by as many.

    python -m benchmarks.revisions v0.1.0 --rounds 20 --drains 8 --processes 8
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Final, TypeVar

from benchmarks.drains import long_drain
from benchmarks.environment import ROOT
from benchmarks.processes import memory, wait_for
from benchmarks.server import exclusive_folder, running
from benchmarks.site import Site
from benchmarks.systems import OURS
from benchmarks.systems.base import Load

T = TypeVar("T")

JOBS: Final = 60  # in a round of lone jobs
PAUSES: Final = (0.02, 0.06)  # seconds between two of them
BACKLOG: Final = 50_000  # jobs of a drain
LONG_BACKLOG: Final = 200_000  # of one by several processes
PATIENCE: Final = 60.0  # seconds
SETTLING: Final = 3.0  # seconds
FIGURES: Final = {
    "wait": "from commit to handler, p50, ms",
    "lone": "CPU of workers and server, µs for a lone job",
    "rate": "jobs/s of a drain",
    "drained": "CPU of workers and server, µs for a drained job",
    "memory": "PSS of all processes after it, MiB",
    "shared_rate": "jobs/s of a drain by several processes",
    "shared_workers": "CPU of the workers, µs for each of its jobs",
    "shared_server": "CPU of the server, µs for each of its jobs",
}


@dataclass
class Side:
    """One of the two, and what was measured of it: a figure of each round."""

    site: Site
    found: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in FIGURES}
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="as git names it")
    parser.add_argument("--rounds", type=int, default=20, help="of lone jobs")
    parser.add_argument("--drains", type=int, default=8, help="of each of the two")
    parser.add_argument("--processes", type=int, default=1, help="of long drains")
    options = parser.parse_args()
    with exclusive_folder() as folder, running(folder) as server:
        root = checked_out(options.revision, folder / "before")
        before = Side(Site(server, folder, root=root, prefix="before_"))
        now = Side(Site(server, folder, prefix="now_"))
        measure_lone_jobs([before, now], options.rounds)
        measure_drains([before, now], options.drains, options.processes)
    report(options.revision, before, now)


def checked_out(revision: str, folder: Path) -> Path:
    """A copy of the revision's files; returns the folder."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


def measure_lone_jobs(sides: Sequence[Side], rounds: int) -> None:
    """Idle workers of both, which get lone jobs in turns."""
    draw = Random(0)
    with ExitStack() as stack:
        ask = [begin(stack, side) for side in sides]
        time.sleep(SETTLING)
        for number in range(rounds):
            pauses = [draw.uniform(*PAUSES) for _ in range(JOBS)]
            for give in turns(ask, number):
                give(pauses)


def begin(stack: ExitStack, side: Side) -> Callable[[Sequence[float]], None]:
    """Start a worker; returns what gives it jobs after such pauses."""
    trial = stack.enter_context(side.site.trial(OURS))
    workers = trial.start(Load.PICKUP)
    enqueuer = stack.enter_context(trial.enqueuer())
    enqueued = 0

    def give(pauses: Sequence[float], *, counts: bool = True) -> None:
        nonlocal enqueued
        first, enqueued = enqueued, enqueued + len(pauses)
        cpu = trial.database.cpu() + workers.cpu()
        committed = enqueuer.paced(first, list(pauses))
        wait_for(partial(trial.journal.has, enqueued), PATIENCE, workers, "the jobs")
        if not counts:
            return
        cpu = trial.database.cpu() + workers.cpu() - cpu
        starts = trial.journal.starts()
        waits = [starts[first + n][0] - at for n, at in enumerate(committed)]
        side.found["wait"].append(median(waits) / 1e6)
        side.found["lone"].append(cpu / len(pauses) * 1e6)

    give([0.03] * JOBS, counts=False)
    return give


def measure_drains(sides: Sequence[Side], rounds: int, processes: int) -> None:
    """Backlogs that are there when the worker starts, in turns."""
    for number in range(rounds):
        for side in turns(sides, number):
            drain(side)
            if processes > 1:
                drain_together(side, processes)


def drain(side: Side) -> None:
    """Work off one."""
    with side.site.trial(OURS) as trial:
        trial.fill(BACKLOG)
        trial.analyse()
        server = trial.database.cpu()
        workers = trial.start(Load.DRAIN)
        wait_for(partial(trial.journal.has, BACKLOG), PATIENCE, workers, "the backlog")
        wait_for(lambda: trial.kept() == BACKLOG, PATIENCE, workers, "the records")
        cpu = trial.database.cpu() - server + workers.cpu()
        at = [record.at for record in trial.journal.records()]
        time.sleep(1)
        side.found["rate"].append(BACKLOG / (max(at) - min(at)) * 1e9)
        side.found["drained"].append(cpu / BACKLOG * 1e6)
        side.found["memory"].append(memory(workers.pids()).pss)


def drain_together(side: Side, processes: int) -> None:
    """Have several processes work off a longer one."""
    with side.site.trial(OURS) as trial:
        found = long_drain(trial, LONG_BACKLOG, processes)
    side.found["shared_rate"].append(found.starts_per_s)
    side.found["shared_workers"].append(found.worker_us)
    side.found["shared_server"].append(found.server_us)


def turns(of: Sequence[T], number: int) -> Sequence[T]:
    """Each round begins with another one."""
    first = number % len(of)
    return [*of[first:], *of[:first]]


def report(revision: str, before: Side, now: Side) -> None:
    """Print the medians and ratios."""
    for name, title in FIGURES.items():
        pairs = list(zip(now.found[name], before.found[name], strict=True))
        if len(pairs) < 2:
            continue
        ratios = [new / old for new, old in pairs]
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        print(
            f"{title}: {revision} {median(before.found[name]):.2f}, now "
            f"{median(now.found[name]):.2f}, ratio {middle:.3f} ({low:.3f} to "
            f"{high:.3f} in half of {len(pairs)} rounds)",
            flush=True,
        )


if __name__ == "__main__":
    main()
