"""How fast is a backlog of jobs that do nothing worked off?"""

from __future__ import annotations

from collections.abc import Callable
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
)
from benchmarks.results import Results
from benchmarks.site import Site
from benchmarks.systems import ALL, OURS, PGQUEUER
from benchmarks.systems.base import Load, System

COLUMNS: Final = (
    Column(key="jobs_per_s", title="jobs/s"),
    Column(key="jobs", title="jobs"),
    Column(key="starts_per_s", title="starts/s"),
    Column(key="worker_us", title="worker CPU µs/job"),
    Column(key="server_us", title="server CPU µs/job"),
    Column(key="transactions", title="transactions/job"),
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


def _measure(*, processes: int, is_cold: bool) -> Measure:
    def measure(site: Site, system: System) -> Values:
        jobs = site.jobs(system.sizes.drain)
        with site.trial(system) as trial:
            if is_cold:
                trial.analyse()
            trial.fill(jobs)
            if not is_cold:
                trial.analyse()
            return values(drain(trial, Load.DRAIN, jobs, processes=processes))

    return measure


def _case(name: str, title: str, measure: Measure) -> Case:
    return Case(
        name=name,
        title=title,
        systems=ALL,
        columns=COLUMNS,
        leads="jobs_per_s",
        better=Better.HIGH,
        measure=measure,
    )


def _to_pgqueuer(case: str) -> Callable[[Results], float | None]:
    key = "jobs_per_s"
    return lambda results: results.ratio(
        (f"drain/{case}", OURS.name, key), (f"drain/{case}", PGQUEUER.name, key)
    )


QUESTION: Final = Question(
    name="drain",
    title="Draining a backlog",
    asked=(
        "Jobs that do nothing are enqueued, then workers are started. Measured from "
        "the first start of a handler until all jobs are recorded as finished; each "
        "system keeps of them what it keeps by default. In the first two cases the "
        "tables are analysed when the jobs are there; in the third they were analysed "
        "while they were empty, as autovacuum leaves them before a burst."
    ),
    cases=(
        _case("one", "One process", _measure(processes=1, is_cold=False)),
        _case("two", "Two processes", _measure(processes=2, is_cold=False)),
        _case(
            "cold",
            "One process, statistics of the empty tables",
            _measure(processes=1, is_cold=True),
        ),
    ),
    why=(
        "What counts first is the number of transactions for a job, because each "
        "waits for the disk. django_jobqueue and pgqueuer claim and finish in batches; "
        "procrastinate and django-tasks-db claim and finish each job by itself. "
        "procrastinate writes its rows of events through triggers, pgqueuer three rows "
        "of its log. What counts next is Python: pgqueuer spends it on a heartbeat, a "
        "cancel scope and validation for each job, django-tasks-db on the ORM and "
        "signals. With the statistics of an empty table the planner may read and "
        "sort the whole backlog for each claim; the connections of our workers leave "
        "it no such plan."
    ),
    aims=(
        Aim(
            text="One process: at least 2 × pgqueuer",
            figure=_to_pgqueuer("one"),
            at_least=2,
        ),
        Aim(
            text="Statistics of the empty tables: at least 2 × pgqueuer",
            figure=_to_pgqueuer("cold"),
            at_least=2,
        ),
        Aim(
            text="Two processes: at least 1.2 × pgqueuer's two",
            figure=_to_pgqueuer("two"),
            at_least=1.2,
        ),
    ),
)
