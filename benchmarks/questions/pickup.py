"""How soon does an idle worker start a job, and what does it cost while it waits?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Final

from benchmarks.figures import percentile
from benchmarks.processes import Workers, wait_for
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site, Trial
from benchmarks.systems import (
    ALL,
    DJANGO_TASKS_DB_OFTEN,
    GRAPHILE_WORKER,
    ON_POSTGRES,
    OURS,
)
from benchmarks.systems.base import Load, System

SYSTEMS: Final = (*ALL, DJANGO_TASKS_DB_OFTEN)
JOBS: Final = 150
WARM_UP: Final = 20
PAUSES: Final = (0.02, 0.06)  # seconds between two jobs, drawn evenly
REST: Final = 1.5  # seconds from the warm-up to the first job
# Seconds after the first job: a backend tells its counters when it was idle for ten,
# and what has leases may need one or two to see that there is nothing to do.
SETTLING: Final = 30.0
WATCHED: Final = 60.0  # seconds
MORE: Final = 2  # processes
ALL_CONNECTED: Final = 5.0  # seconds


def _pickup(site: Site, system: System) -> Values:
    jobs = site.jobs(JOBS)
    draw = Random(jobs)
    pauses = [draw.uniform(*PAUSES) for _ in range(jobs)]
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        workers = trial.start(Load.PICKUP)
        journal = trial.journal
        enqueuer.paced(0, pauses[:WARM_UP])
        wait_for(partial(journal.has, WARM_UP), 30, workers, "the warm-up")
        time.sleep(REST)
        committed = enqueuer.paced(WARM_UP, pauses)
        wait_for(partial(journal.has, WARM_UP + jobs), 30, workers, "the jobs")
        starts = journal.starts()
    waits = [
        max(0, starts[number][0] - at) / 1e6
        for number, at in enumerate(committed, WARM_UP)
    ]
    return {
        "p50_ms": percentile(waits, 50),
        "p99_ms": percentile(waits, 99),
        "longest_ms": max(waits),
    }


def _idle(site: Site, systems: Sequence[System]) -> Mapping[str, Values]:
    with ExitStack() as stack:
        stack.enter_context(site.server.without_autovacuum())
        trials = [stack.enter_context(site.trial(system)) for system in systems]
        workers = []
        for trial in trials:
            trial.fill(1)
            workers.append(trial.start(Load.PICKUP))
        for trial, its in zip(trials, workers, strict=True):
            wait_for(partial(trial.journal.has, 1), 30, its, "the first job")
        time.sleep(site.seconds(SETTLING))
        before = [trial.place.counters()[0] for trial in trials]
        cpu = [its.cpu() for its in workers]
        began = time.monotonic()
        time.sleep(site.seconds(WATCHED))
        return {
            trial.system.name: _idle_values(trial, its, transactions, spent, began)
            for trial, its, transactions, spent in zip(
                trials, workers, before, cpu, strict=True
            )
        }


def _idle_values(
    trial: Trial, workers: Workers, transactions: int, cpu: float, since: float
) -> Values:
    took = time.monotonic() - since
    found = {
        "transactions_per_s": (trial.place.counters()[0] - transactions) / took,
        "cpu_ms_per_s": (workers.cpu() - cpu) / took * 1_000,
        "processes": len(workers.pids()),
    }
    if not trial.system.on_redis:
        found["connections"] = trial.database.connections()
    return found


def _connections(site: Site, system: System) -> Values:
    """What each further process of the same command, or command, adds."""
    connections = []
    for processes in (1, 1 + MORE):
        with site.trial(system) as trial:
            trial.fill(1)
            workers = trial.start(Load.PICKUP, processes)
            wait_for(partial(trial.journal.has, 1), 30, workers, "the first job")
            time.sleep(site.seconds(ALL_CONNECTED))
            connections.append(trial.database.connections())
    one, many = connections
    return {"first": one, "further": (many - one) / MORE}


QUESTION: Final = Question(
    name="pickup",
    title="Pickup by an idle worker",
    asked=(
        f"One idle worker process gets {JOBS} jobs, 20 to 60 ms apart. Measured from "
        "the return of the enqueue, after its commit, to the first line of the "
        "handler. Then all workers are left alone for half a minute, and the "
        "transactions of their databases (of Redis the commands) are counted, without "
        "autovacuum. Connections are those that a worker process adds, and those of "
        "the first one with its parent."
    ),
    cases=(
        Case(
            name="pickup",
            title="From commit to handler",
            systems=SYSTEMS,
            columns=(
                Column(key="p50_ms", title="p50 ms"),
                Column(key="p99_ms", title="p99 ms"),
                Column(key="longest_ms", title="longest ms"),
            ),
            leads="p50_ms",
            also=("p99_ms",),
            better=Better.LOW,
            measure=_pickup,
        ),
        Case(
            name="idle",
            title="Without work",
            systems=SYSTEMS,
            columns=(
                Column(key="transactions_per_s", title="transactions or commands/s"),
                Column(key="cpu_ms_per_s", title="CPU ms/s"),
                Column(key="connections", title="connections"),
                Column(key="processes", title="processes"),
            ),
            leads="transactions_per_s",
            also=("cpu_ms_per_s",),
            better=Better.LOW,
            together=_idle,
            most_rounds=1,
        ),
        Case(
            name="connections",
            title="Connections",
            systems=ON_POSTGRES,
            columns=(
                Column(key="further", title="for each further process"),
                Column(key="first", title="for the first one"),
            ),
            leads="further",
            also=("first",),
            better=Better.LOW,
            measure=_connections,
            most_rounds=1,
        ),
    ),
    why=(
        "LISTEN/NOTIFY wakes a worker within milliseconds; polling waits half an "
        "interval on average. pgqueuer listens on the connection that it claims with, "
        "so a claim may wait for the next notification."
    ),
    aims=(
        Aim(
            text="p50 at most 1.3 × graphile-worker's",
            figure=lambda r: r.ratio(
                ("pickup/pickup", OURS.name, "p50_ms"),
                ("pickup/pickup", GRAPHILE_WORKER.name, "p50_ms"),
            ),
            at_most=1.3,
        ),
        Aim(
            text="p99 at most 5 ms",
            figure=lambda r: r.median("pickup/pickup", OURS.name, "p99_ms"),
            at_most=5,
        ),
        Aim(
            text="Idle: at most 0.2 queries/s",
            figure=lambda r: r.median("pickup/idle", OURS.name, "transactions_per_s"),
            at_most=0.2,
        ),
        Aim(
            text="Idle: at most 1 ms CPU/s",
            figure=lambda r: r.median("pickup/idle", OURS.name, "cpu_ms_per_s"),
            at_most=1,
        ),
        Aim(
            text="At most 2 connections for a process",
            figure=lambda r: r.median("pickup/connections", OURS.name, "further"),
            at_most=2,
        ),
    ),
)
