"""Drains: workers are started for jobs that wait, and run until all are recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.journal import Kind
from benchmarks.processes import Failed, Workers, until, wait_for
from benchmarks.site import Trial
from benchmarks.systems.base import Load

LONGEST: Final = 90.0  # seconds
STARTING: Final = 20_000  # jobs of a long drain, until all processes are at work
RECORDING: Final = 20.0  # seconds from the last handler to the last record
ERROR: Final = 0.02  # of the time of a drain
FLUSH: Final = 0.3  # seconds until an ended backend's counters are there


@dataclass(frozen=True, kw_only=True)
class Drain:
    """What a drain came to."""

    jobs: int  # that were done
    seconds: float  # from the first start of a handler to the last record
    starts_per_s: float  # of handlers, from the first to the last
    start: float  # seconds from the start of the workers to that of a handler
    worker_us: float  # CPU of the workers for each job, without their start
    server_us: float  # CPU of the server for each job
    transactions: float  # for each job; of Redis, commands
    blocks: float  # touched for each job
    most_at_once: int  # handlers

    @property
    def jobs_per_s(self) -> float:
        """The rate."""
        return self.jobs / self.seconds


def drain(
    trial: Trial,
    load: Load,
    jobs: int,
    *,
    processes: int = 1,
    ms: int = 0,
    longest: float = LONGEST,
) -> Drain:
    """Start workers for the jobs that wait, and end them when all are recorded.

    After ``longest`` seconds it is cut off: what was done until then counts. Raises
    Failed if a worker dies, a job is run twice, or a finished one is not kept.
    """
    place = trial.place
    place.settle()
    kept_before = trial.kept() or 0
    already = len(trial.journal)
    transactions, blocks = place.counters()
    began = time.monotonic_ns()
    workers = trial.start(load, processes)
    first = _first_start(trial, workers, already)
    worker_cpu, server_cpu = workers.cpu(), place.cpu()
    is_whole = run_out(trial, workers, already + jobs * (2 if ms else 1), longest)
    ended = time.monotonic_ns()
    worker_cpu = workers.cpu() - worker_cpu
    server_cpu = place.cpu() - server_cpu
    workers.kill()
    time.sleep(FLUSH)
    now = place.counters()
    done = _check(trial, already, kept_before, jobs if is_whole else None)
    return Drain(
        jobs=done,
        seconds=(ended - first) / 1e9,
        starts_per_s=(done - 1) / (_last_start(trial, already) - first) * 1e9,
        start=(first - began) / 1e9,
        worker_us=worker_cpu / done * 1e6,
        server_us=server_cpu / done * 1e6,
        transactions=(now[0] - transactions) / done,
        blocks=(now[1] - blocks) / done,
        most_at_once=_most_at_once(trial, already) if ms else 0,
    )


@dataclass(frozen=True, kw_only=True)
class LongDrain:
    """What a drain came to, from when all processes were at work."""

    starts_per_s: float
    worker_us: float  # CPU of the workers for each job
    server_us: float  # CPU of the server for each job


def long_drain(trial: Trial, jobs: int, processes: int) -> LongDrain:
    """Enqueue so many jobs and have them drained."""
    trial.fill(jobs)
    trial.analyse()
    workers = trial.start(Load.DRAIN, processes)
    began, done = (partial(trial.journal.has, count) for count in (STARTING, jobs))
    wait_for(began, LONGEST, workers, "the first jobs")
    begun = len(trial.journal)
    server_cpu, worker_cpu = trial.place.cpu(), workers.cpu()
    wait_for(done, LONGEST, workers, "the backlog")
    server_cpu = trial.place.cpu() - server_cpu
    worker_cpu = workers.cpu() - worker_cpu
    at = [record.at for record in trial.journal.records(since=begun)]
    return LongDrain(
        starts_per_s=len(at) / (max(at) - min(at)) * 1e9,
        worker_us=worker_cpu / len(at) * 1e6,
        server_us=server_cpu / len(at) * 1e6,
    )


def _first_start(trial: Trial, workers: Workers, already: int) -> int:
    """Wait for the first handler; returns when it started, in ns."""
    if not until(
        lambda: len(trial.journal) > already, 30, workers=workers, every=0.002
    ):
        raise Failed(f"No job was started within 30 s:\n{workers.last_words()}")
    return min(r.at for r in trial.journal.records(Kind.START, already))


def _last_start(trial: Trial, already: int) -> int:
    return max(r.at for r in trial.journal.records(Kind.START, already))


def run_out(trial: Trial, workers: Workers, records: int, longest: float) -> bool:
    """Wait until the journal has so many records, and no job is claimed any more.

    Returns whether it came to that.
    """
    began = time.monotonic()
    if not until(lambda: len(trial.journal) >= records, longest, workers=workers):
        return False
    return until(
        lambda: trial.running() == 0,
        RECORDING,
        workers=workers,
        at_least_every=(time.monotonic() - began) * ERROR,
    )


def _check(trial: Trial, already: int, kept_before: int, jobs: int | None) -> int:
    """The number of jobs that were done; of a whole drain, exactly these."""
    numbers = [r.number for r in trial.journal.records(Kind.START, already)]
    if len(set(numbers)) != len(numbers):
        raise Failed(f"{len(numbers) - len(set(numbers))} jobs were run twice.")
    kept = trial.kept()
    kept = len(numbers) if kept is None else kept - kept_before
    if jobs is not None and (len(numbers), kept) != (jobs, jobs):
        raise Failed(f"Of {jobs} jobs {len(numbers)} were run and {kept} are kept.")
    return len(numbers)


def _most_at_once(trial: Trial, already: int) -> int:
    depth = most = 0
    for record in sorted(trial.journal.records(since=already), key=lambda r: r.at):
        depth += 1 if record.kind == Kind.START else -1
        most = max(most, depth)
    return most
