"""How long does a job take from its enqueue to its end under a steady load, and what
does it cost?"""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from benchmarks.figures import percentile
from benchmarks.journal import Kind
from benchmarks.processes import wait_for
from benchmarks.questions.base import (
    Aim,
    Better,
    Case,
    Column,
    Question,
    Values,
    to_best_other,
)
from benchmarks.site import Site
from benchmarks.systems import ALL, ON_POSTGRES, OURS
from benchmarks.systems.base import Load, System

RATE: Final = 200.0  # jobs a second
MS: Final = 5  # that each takes
SECONDS: Final = 60.0
WARM_UP: Final = 50
REST: Final = 2.0  # seconds after it
RECORDS: Final = 2  # of each job in the journal


def _measure(site: Site, system: System) -> Values:
    jobs = round(RATE * site.seconds(SECONDS, least=2))
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        workers = trial.start(Load.STEADY)
        has = trial.journal.has
        enqueuer.many(WARM_UP, ms=MS)
        wait_for(partial(has, RECORDS * WARM_UP), 60, workers, "the warm-up")
        time.sleep(REST)
        trial.place.settle()
        worker_cpu, server_cpu = workers.cpu(), trial.place.cpu()
        called = enqueuer.steady(WARM_UP, jobs, RATE, MS)
        backlog = WARM_UP + jobs - len(trial.journal) / RECORDS
        wait_for(partial(has, RECORDS * (WARM_UP + jobs)), 60, workers, "the jobs")
        worker_us = (workers.cpu() - worker_cpu) / jobs * 1e6
        server_us = (trial.place.cpu() - server_cpu) / jobs * 1e6
        ends = {record.number: record.at for record in trial.journal.records(Kind.END)}
    times = [(ends[number] - at) / 1e6 for number, at in enumerate(called, WARM_UP)]
    return {
        "p50_ms": percentile(times, 50),
        "p99_ms": percentile(times, 99),
        "longest_ms": max(times),
        "cpu_us": worker_us + server_us,
        "worker_us": worker_us,
        "server_us": server_us,
        "backlog": backlog,
    }


QUESTION: Final = Question(
    name="steady",
    title="A steady load",
    asked=(
        f"{RATE:g} jobs per second, each of {MS} ms, for {SECONDS:g} s, each enqueued "
        "on time by itself. Times are from the start of the enqueue to the end of the "
        f"handler, so at least {MS} ms. CPU is that of the workers and of the server, "
        "enqueues included."
    ),
    cases=(
        Case(
            name="load",
            title="End to end",
            systems=ALL,
            columns=(
                Column(key="p50_ms", title="p50 ms"),
                Column(key="p99_ms", title="p99 ms"),
                Column(key="longest_ms", title="longest ms"),
                Column(key="cpu_us", title="CPU µs/job"),
                Column(key="worker_us", title="of the workers"),
                Column(key="server_us", title="of the server"),
                Column(key="backlog", title="backlog"),
            ),
            leads="cpu_us",
            also=("p50_ms", "p99_ms"),
            better=Better.LOW,
            measure=_measure,
            most_rounds=1,
        ),
    ),
    why=(
        "There is nothing to batch, so the cost of one claim and one finish counts, "
        "and what each of them wakes up. By the server's log, a job of ours has an "
        "INSERT, at most one claim and one finish, of which each waits for the disk, "
        "and a fifth of another statement; what Redis does for dramatiq waits for no "
        "disk."
    ),
    aims=(
        Aim(
            text="p99 at most 15 ms",
            figure=lambda r: r.median("steady/load", OURS.name, "p99_ms"),
            at_most=15,
        ),
        Aim(
            text="CPU for a job: less than any other system on PostgreSQL",
            figure=to_best_other("steady/load", "cpu_us", ON_POSTGRES, min),
            at_most=1,
        ),
    ),
)
