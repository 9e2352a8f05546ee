"""Do rows that are not to be run slow down those that are?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.drains import Drain, drain
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.results import Results
from benchmarks.site import Site
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import Load, System

ROWS: Final = 1_000_000
LONGEST: Final = 20.0  # seconds of a drain


def _measure(site: Site, system: System) -> Values:
    empty = _drain(site, system, "", ())
    future = _drain(site, system, "_future", system.load_future)
    kept = _drain(site, system, "_kept", system.load_kept)
    return {
        "empty": empty.jobs_per_s,
        "future": future.jobs_per_s,
        "future_ratio": future.jobs_per_s / empty.jobs_per_s,
        "kept": kept.jobs_per_s,
        "kept_ratio": kept.jobs_per_s / empty.jobs_per_s,
        "empty_blocks": empty.blocks,
        "future_blocks": future.blocks,
        "kept_blocks": kept.blocks,
    }


def _drain(site: Site, system: System, suffix: str, statements: Sequence[str]) -> Drain:
    jobs = site.jobs(system.sizes.crowded)
    loaded = [statement.format(n=site.jobs(ROWS)) for statement in statements]
    with site.trial(system, site.template(system, suffix, loaded)) as trial:
        trial.fill(jobs)
        trial.analyse()
        return drain(trial, Load.DRAIN, jobs, longest=LONGEST)


def _ratio(key: str) -> Callable[[Results], float | None]:
    """How many times longer a job takes in the crowd."""

    def figure(results: Results) -> float | None:
        rate = results.median("crowded/rows", OURS.name, key)
        return 1 / rate if rate else None

    return figure


QUESTION: Final = Question(
    name="crowded",
    title="A million rows that are not to be run",
    asked=(
        f"A drain by one process, in the empty tables; beside {ROWS:,} jobs that are "
        f"due in a year; and beside {ROWS:,} finished jobs, in the form in which each "
        "system keeps them. The tables are vacuumed and analysed. The rate counts, and "
        "the blocks of the database that were touched for each job, which noise on "
        f"the machine does not change. A drain is cut off after {LONGEST:g} s."
    ),
    cases=(
        Case(
            name="rows",
            title="Drains",
            systems=ALL,
            columns=(
                Column(key="empty", title="empty: jobs/s"),
                Column(key="future", title="future: jobs/s"),
                Column(key="future_ratio", title="to empty"),
                Column(key="kept", title="kept: jobs/s"),
                Column(key="kept_ratio", title="to empty"),
                Column(key="empty_blocks", title="empty: blocks/job"),
                Column(key="future_blocks", title="future"),
                Column(key="kept_blocks", title="kept"),
            ),
            leads="future",
            better=Better.HIGH,
            measure=_measure,
            most_rounds=2,
        ),
    ),
    why=(
        "The index by which django-tasks-db, procrastinate and pgqueuer claim is "
        "ordered by priority and then by age, with the due time as a filter: jobs of "
        "the future are walked over at each claim, if they come first in that order. "
        "Our index has the due time in its order, and finished jobs are in a table of "
        "their own."
    ),
    aims=(
        Aim(
            text="Beside future jobs a job takes at most 1.3 × the time",
            figure=_ratio("future_ratio"),
            at_most=1.3,
        ),
        Aim(
            text="Beside archived jobs a job takes at most 1.3 × the time",
            figure=_ratio("kept_ratio"),
            at_most=1.3,
        ),
    ),
)
