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
        "the first start of a handler until all jobs are recorded as finished; each "
        "system keeps of them what it keeps by default. The tables are analysed when "
        "the jobs are there; but in the third case they were analysed while they were "
        "empty, as autovacuum leaves them before a burst. The handlers are sync where "
        "a system has the choice, but for the fourth case. The last one is the ceiling "
        "of ours: the very statements of its claims and its finishes in a loop, in "
        "turns, and both at once: one batch is finished while the next is claimed."
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
                Column(key="ceiling", title="best: jobs/s"),
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
        "What counts first is the number of transactions for a job, because each "
        "waits for the disk. django_jobqueue, graphile-worker, pg-boss, pgqueuer and "
        "chancy claim in batches, and all of these finish in batches; procrastinate, "
        "django-tasks-db and django-ox claim and finish each job by itself. "
        "graphile-worker deletes what is finished; pg-boss calls its handler once for "
        "a batch, so next to nothing is done for a single job. procrastinate writes "
        "its rows of events through triggers, pgqueuer three rows of its log. What "
        "counts next is Python: pgqueuer spends it on a heartbeat, a cancel scope and "
        "validation for each job, the backends for Django's tasks on the ORM and "
        "signals. Ours claims the next thousand or two while one thread runs what is "
        "there and another writes what has ended. With the statistics of an empty "
        "table the planner may read and sort the whole backlog for each claim; the "
        "connections of our workers leave it no such plan. celery and dramatiq wait "
        "for no disk: Redis writes to it now and then, and forgets what came since "
        "when it is killed."
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
                "The loop of bare statements has both cores for the server. A worker "
                "needs 11 µs of Python for each job besides, on the same cores: by a "
                "profile three tenths of it to call the handler and deal with its end, "
                "as much to write outcomes, a quarter for the line that the "
                "benchmark's handler writes into its journal, an eighth to claim."
            ),
        ),
        Aim(
            text="Two processes: at least 1.3 × one",
            figure=_ratio("two", "one", OURS),
            at_least=1.3,
            reason=(
                "A job takes 11 µs of the worker and 17 of the server, so one process "
                "keeps 1.4 of the two cores busy already, and two processes 1.75: the "
                "machine is full. By a profile the server's part is the UPDATE that "
                "claims, and the statement that moves jobs to the archive, in halves."
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
