"""How soon does an idle worker start a job, and what does it cost while it waits?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Final

from benchmarks.figures import percentile
from benchmarks.processes import wait_for
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site
from benchmarks.systems import ALL, DJANGO_TASKS_DB_OFTEN, OURS
from benchmarks.systems.base import Load, System

SYSTEMS: Final = (*ALL, DJANGO_TASKS_DB_OFTEN)
JOBS: Final = 150
WARM_UP: Final = 20
PAUSES: Final = (0.02, 0.06)  # seconds between two jobs, drawn evenly
REST: Final = 1.5  # seconds from the warm-up to the first job
SETTLING: Final = 14.0  # seconds; an idle backend tells its counters after ten
WATCHED: Final = 30.0  # seconds


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
    found: dict[str, Values] = {}
    with ExitStack() as stack:
        trials = [stack.enter_context(site.trial(system)) for system in systems]
        workers = []
        for trial in trials:
            trial.fill(1)
            trial.connection.close()  # it shall not count
            workers.append(trial.start(Load.PICKUP))
        for trial, its in zip(trials, workers, strict=True):
            wait_for(partial(trial.journal.has, 1), 30, its, "the first job")
        time.sleep(site.seconds(SETTLING))
        before = [site.server.counters(trial.database)[0] for trial in trials]
        cpu = [its.cpu() for its in workers]
        began = time.monotonic()
        time.sleep(site.seconds(WATCHED))
        for i, trial in enumerate(trials):
            took = time.monotonic() - began
            transactions = site.server.counters(trial.database)[0] - before[i]
            found[trial.system.name] = {
                "transactions_per_s": transactions / took,
                "cpu_ms_per_s": (workers[i].cpu() - cpu[i]) / took * 1_000,
                "connections": _connections(site, trial.database),
            }
    return found


def _connections(site: Site, database: str) -> int:
    row = site.server.admin.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [database]
    ).fetchone()
    assert row is not None
    return int(row[0])


QUESTION: Final = Question(
    name="pickup",
    title="Pickup by an idle worker",
    asked=(
        f"One worker process that has nothing to do; {JOBS} jobs come one by one, "
        "20 to 60 ms apart. Measured from the return of the enqueue, which has "
        "committed by then, to the first line of the handler. Then workers of all "
        "systems are left alone, each with its own database, and the transactions "
        "there are counted: an idle worker's queries are transactions of one statement."
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
            better=Better.LOW,
            measure=_pickup,
        ),
        Case(
            name="idle",
            title="While there is nothing to do",
            systems=SYSTEMS,
            columns=(
                Column(key="transactions_per_s", title="transactions/s"),
                Column(key="cpu_ms_per_s", title="CPU ms/s"),
                Column(key="connections", title="connections"),
            ),
            leads="transactions_per_s",
            better=Better.LOW,
            together=_idle,
            most_rounds=1,
        ),
    ),
    why=(
        "LISTEN/NOTIFY wakes a worker within milliseconds; who polls waits for half "
        "of the interval on average, and pays for each poll. pgqueuer's driver gives "
        "one connection to both LISTEN and queries, so that a claim may wait until "
        "the next notification comes; ours and procrastinate's listen on a connection "
        "of their own."
    ),
    aims=(
        Aim(
            text="p50 at most 3 ms",
            figure=lambda r: r.median("pickup/pickup", OURS.name, "p50_ms"),
            at_most=3,
        ),
        Aim(
            text="p99 at most 10 ms",
            figure=lambda r: r.median("pickup/pickup", OURS.name, "p99_ms"),
            at_most=10,
        ),
        Aim(
            text="Idle: at most 1 query/s",
            figure=lambda r: r.median("pickup/idle", OURS.name, "transactions_per_s"),
            at_most=1,
        ),
    ),
)
