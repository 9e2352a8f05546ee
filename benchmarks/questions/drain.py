"""How fast is a backlog of jobs that do nothing worked off?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.drains import Drain, drain
from benchmarks.questions.base import (
    Aim,
    Better,
    Case,
    Column,
    Measure,
    Question,
    Values,
    to_best_other,
)
from benchmarks.results import Results
from benchmarks.site import Site
from benchmarks.systems import (
    ALL,
    GRAPHILE_WORKER,
    GRAPHILE_WORKER_ONE_BY_ONE,
    ON_POSTGRES,
    OURS,
)
from benchmarks.systems.base import Load, System

Ratio = Callable[[Results], float | None]

BATCHES: Final = (100, 500, 1_000)
COLUMNS: Final = (
    Column(key="jobs_per_s", title="jobs/s"),
    Column(key="jobs", title="jobs"),
    Column(key="starts_per_s", title="starts/s"),
    Column(key="worker_us", title="worker CPU µs/job"),
    Column(key="server_us", title="server CPU µs/job"),
    Column(key="transactions", title="transactions or commands/job"),
)


def values(found: Drain) -> Values:
    """The figures of a drain."""
    return {
        "jobs_per_s": found.jobs_per_s,
        "jobs": found.jobs,
        "starts_per_s": found.starts_per_s,
        "worker_us": found.worker_us,
        "server_us": found.server_us,
        "transactions": found.transactions,
    }


def _measure(
    *, processes: int = 1, is_cold: bool = False, is_async: bool = False
) -> Measure:
    def measure(site: Site, system: System) -> Values:
        jobs = site.jobs(system.sizes.drain)
        with site.trial(system) as trial:
            if is_cold:
                trial.analyse()
            trial.fill(jobs, is_async=is_async)
            if not is_cold:
                trial.analyse()
            return values(drain(trial, Load.DRAIN, jobs, processes=processes))

    return measure


def _ceiling(site: Site, system: System) -> Values:
    """The rate of the bare statements, each in its own trial."""
    jobs = site.jobs(system.sizes.drain)
    rates = {}
    for at_once in (1, 2):
        for batch in BATCHES:
            with site.trial(system) as trial:
                trial.fill(jobs)
                trial.analyse()
                trial.place.settle()
                found = trial.bare(do="drain", batch=batch, at_once=at_once)
            rates[f"{at_once}_{batch}"] = found["jobs"] / found["seconds"]
    return {**rates, "ceiling": max(rates.values())}


def _case(
    name: str,
    title: str,
    measure: Measure,
    systems: Sequence[System],
    columns: Sequence[Column] = COLUMNS,
    leads: str = "jobs_per_s",
) -> Case:
    return Case(
        name=name,
        title=title,
        systems=systems,
        columns=columns,
        leads=leads,
        better=Better.HIGH,
        measure=measure,
    )


def _ratio(ours: str, case: str, system: System, key: str = "jobs_per_s") -> Ratio:
    return lambda results: results.ratio(
        (f"drain/{ours}", OURS.name, "jobs_per_s"), (f"drain/{case}", system.name, key)
    )


QUESTION: Final = Question(
    name="drain",
    title="Draining a backlog",
    asked=(
        "Jobs that do nothing are enqueued, then workers are started. Measured from "
        "the first start of a handler until all jobs are recorded as finished. The "
        "tables are analysed when the jobs are there, but in the third case while "
        "they are empty, as autovacuum leaves them before a burst. Handlers are sync "
        'where a system has the choice. "The bare statements" are our claims and '
        "finishes in a loop, without a worker: the ceiling of ours."
    ),
    cases=(
        _case("one", "One process", _measure(), (*ALL, GRAPHILE_WORKER_ONE_BY_ONE)),
        _case("two", "Two processes", _measure(processes=2), ALL),
        _case(
            "cold",
            "One process, statistics of the empty tables",
            _measure(is_cold=True),
            ON_POSTGRES,
        ),
        _case("async", "One process, async handlers", _measure(is_async=True), (OURS,)),
        _case(
            "ceiling",
            "The bare statements",
            _ceiling,
            (OURS,),
            (
                Column(key="ceiling", title="jobs/s at best"),
                *(
                    Column(
                        key=f"{at_once}_{batch}",
                        title=f"in turns, batches of {batch}"
                        if at_once == 1
                        else f"both at once, batches of {batch}",
                    )
                    for at_once in (1, 2)
                    for batch in BATCHES
                ),
            ),
            "ceiling",
        ),
    ),
    why=(
        "First count the transactions per job, since each waits for the disk: "
        "django_jobqueue, graphile-worker, pg-boss, pgqueuer and chancy claim and "
        "finish in batches, the others job by job. graphile-worker deletes finished "
        "jobs; pg-boss calls its handler once per batch. Then counts Python, per job. "
        "With the statistics of an empty table the planner may read and sort the "
        "whole backlog for each claim; our connections leave it no such plan. celery "
        "and dramatiq do not wait for a disk: Redis forgets its last jobs when it is "
        "killed."
    ),
    aims=(
        Aim(
            text="One process: at least graphile-worker in batches",
            figure=_ratio("one", "one", GRAPHILE_WORKER),
            at_least=1,
        ),
        Aim(
            text="One process: at least 0.6 of the bare statements",
            figure=_ratio("one", "ceiling", OURS, "ceiling"),
            at_least=0.6,
            reason=(
                "The loop of bare statements leaves both cores to the server. A "
                "worker also needs 11 µs of Python per job: by a profile, three "
                "tenths to call the handler and handle its end, three tenths to write "
                "outcomes, a quarter for the journal of the benchmark, an eighth to "
                "claim."
            ),
        ),
        Aim(
            text="Two processes: at least 1.3 × one",
            figure=_ratio("two", "one", OURS),
            at_least=1.3,
            reason=(
                "A job takes 11 µs of the worker and 17 µs of the server, so one "
                "process keeps 1.4 of the two cores busy, and two keep 1.75: the "
                "machine is full. The server's time is half the claiming UPDATE, half "
                "the move to the archive."
            ),
        ),
        Aim(
            text="Two processes: at least the best other system's two",
            figure=to_best_other("drain/two", "jobs_per_s", ALL, max),
            at_least=1,
        ),
        Aim(
            text="Statistics of the empty tables: at least 0.95 × the right ones",
            figure=_ratio("cold", "one", OURS),
            at_least=0.95,
        ),
        Aim(
            text="Async handlers: at least 0.9 × sync ones",
            figure=_ratio("async", "one", OURS),
            at_least=0.9,
        ),
    ),
)
