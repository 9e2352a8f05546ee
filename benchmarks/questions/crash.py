"""How soon do jobs start again whose worker was killed?"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from benchmarks.processes import Workers, until, wait_for
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site, Trial
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import Load, System

LONG: Final = 300_000  # ms that a job sleeps: longer than anybody looks on
PROBE_EVERY: Final = 0.5  # seconds
PATIENCE: Final = 60.0  # seconds from the kill
LEASE: Final = 15  # seconds; our default
COLUMNS: Final = (
    Column(key="seconds", title="seconds"),
    Column(key="jobs", title="jobs that ran"),
    Column(key="again", title="started again"),
)


def _worker(site: Site, system: System) -> Values:
    with site.trial(system) as trial:
        workers = _busy(trial)
        (pid,) = trial.journal.pids()
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic_ns()
        until(lambda: len(_again(trial)) == system.sizes.crash, PATIENCE)
        workers.check()
        return _values(trial, killed)


def _host(site: Site, systems: Sequence[System]) -> Mapping[str, Values]:
    with ExitStack() as stack:
        trials = [stack.enter_context(site.trial(system)) for system in systems]
        doomed = []
        for trial in trials:
            doomed.append(_busy(trial))
            _have_others_ready(trial)
        killed = []
        for workers in doomed:
            killed.append(time.monotonic_ns())
            workers.kill()
        until(
            lambda: all(len(_again(t)) == t.system.sizes.crash for t in trials),
            site.seconds(PATIENCE, least=LEASE + 5),
            every=0.1,
        )
        return {
            trial.system.name: _values(trial, at)
            for trial, at in zip(trials, killed, strict=True)
        }


def _busy(trial: Trial) -> Workers:
    """Workers that have no room left."""
    jobs = trial.system.sizes.crash
    workers = trial.start(Load.CRASH)
    trial.fill(jobs, ms=LONG)
    wait_for(lambda: len(trial.journal) == jobs, 30, workers, "all jobs to run")
    return workers


def _have_others_ready(trial: Trial) -> None:
    """Start others beside them, and wait until these have run a job."""
    others = trial.start(Load.CRASH)
    number = trial.system.sizes.crash
    with trial.enqueuer() as enqueuer:
        while not trial.journal.pids() & set(others.pids()):
            enqueuer.many(1, first=number)
            number += 1
            time.sleep(PROBE_EVERY)
            others.check()


def _again(trial: Trial) -> list[int]:
    """When each job that was running started for the second time, in ns."""
    starts = trial.journal.starts()
    return [
        starts[number][1]
        for number in range(trial.system.sizes.crash)
        if len(starts[number]) > 1
    ]


def _values(trial: Trial, killed: int) -> Values:
    again, jobs = _again(trial), trial.system.sizes.crash
    return {
        "seconds": (max(again) - killed) / 1e9 if len(again) == jobs else None,
        "jobs": jobs,
        "again": len(again),
    }


QUESTION: Final = Question(
    name="crash",
    title="After a crash",
    asked=(
        "Workers run as many long jobs as they can. Either the process that runs them "
        "is killed (`kill -9`), or all processes of the first workers are, while "
        "others, as on another host, have room. Measured from the kill until all jobs "
        f"run again, for at most {PATIENCE:g} s, with each system's default settings."
    ),
    cases=(
        Case(
            name="worker",
            title="Worker process killed",
            systems=(OURS,),
            columns=COLUMNS,
            leads="seconds",
            better=Better.LOW,
            measure=_worker,
        ),
        Case(
            name="host",
            title="All processes killed",
            systems=[system for system in ALL if system.sizes.crash],
            columns=COLUMNS,
            leads="seconds",
            better=Better.LOW,
            together=_host,
            most_rounds=1,
            never=f"not in {PATIENCE:g} s",
        ),
    ),
    why=(
        f"Our supervisor sees its child die; other hosts notice by the lease, {LEASE} "
        "s by default. pgqueuer repeats jobs without a heartbeat for 30 s; chancy "
        "notices after 90 s, django-ox after 300 s, pg-boss after 15 minutes, "
        "graphile-worker after 4 hours. procrastinate leaves it to its user, "
        "django-tasks-db never notices, and celery, which acknowledges first, would "
        "lose the jobs; it and dramatiq are left out."
    ),
    aims=(
        Aim(
            text="A killed worker process: at most 2 s",
            figure=lambda r: r.median("crash/worker", OURS.name, "seconds"),
            at_most=2,
        ),
        Aim(
            text=f"A lost host: at most {LEASE + 2} s, the lease and 2 s",
            figure=lambda r: r.median("crash/host", OURS.name, "seconds"),
            at_most=LEASE + 2,
        ),
    ),
)
