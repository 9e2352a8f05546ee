"""Do rows that are not to be run slow down those that are?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.drains import Drain, drain
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.results import Results
from benchmarks.site import Site
from benchmarks.systems import ON_POSTGRES, OURS
from benchmarks.systems.base import Load, System

ROWS: Final = 1_000_000
MANY: Final = 10_000_000
LONGEST: Final = 20.0  # seconds of a drain


def _measure(site: Site, system: System) -> Values:
    empty = _drain(site, system, "", ())
    found = {"empty": empty.jobs_per_s, "empty_blocks": empty.blocks}
    crowds = {
        "future": system.load_future,
        "other": system.load_other,
        "kept": system.load_kept,
    }
    for name, statements in crowds.items():
        if statements:  # not all keep their finished jobs
            crowded = _drain(site, system, f"_{name}", statements)
            found[name] = crowded.jobs_per_s
            found[f"{name}_ratio"] = crowded.jobs_per_s / empty.jobs_per_s
            found[f"{name}_blocks"] = crowded.blocks
    return found


def _archive(site: Site, system: System) -> Values:
    empty = _drain(site, system, "", ())
    kept = _drain(site, system, "_archive", system.load_kept, MANY)
    return {
        "empty": empty.jobs_per_s,
        "kept": kept.jobs_per_s,
        "ratio": kept.jobs_per_s / empty.jobs_per_s,
        "rows": site.jobs(MANY),
    }


def _drain(
    site: Site,
    system: System,
    suffix: str,
    statements: Sequence[str],
    rows: int = ROWS,
) -> Drain:
    jobs = site.jobs(system.sizes.crowded)
    # In steps: one statement for ten million rows would need its own room on the disk.
    steps = max(1, site.jobs(rows) // ROWS)
    loaded = [s.format(n=site.jobs(rows) // steps) for s in statements] * steps
    with site.trial(system, site.template(system, suffix, loaded)) as trial:
        trial.fill(jobs)
        trial.analyse()
        return drain(trial, Load.CROWDED, jobs, longest=LONGEST)


def _ratio(case: str, key: str) -> Callable[[Results], float | None]:
    """The rate in the crowd to that in the empty tables."""
    return lambda results: results.median(f"crowded/{case}", OURS.name, key)


QUESTION: Final = Question(
    name="crowded",
    title="Rows that are not to be run",
    asked=(
        f"A drain by one process, in the empty tables; beside {ROWS:,} jobs that are "
        f"due in a year; beside {ROWS:,} jobs in queues, or of kinds, that the worker "
        f"does not serve; and beside {ROWS:,} finished jobs, in the form in which each "
        f"system keeps them; ours also beside {MANY:,} archived ones. The tables are "
        "vacuumed and analysed. The rate counts, and the blocks of the database that "
        "were touched for each job, which noise on the machine does not change. A "
        f"drain is cut off after {LONGEST:g} s."
    ),
    cases=(
        Case(
            name="rows",
            title="Drains beside a million",
            systems=ON_POSTGRES,
            columns=(
                Column(key="empty", title="empty: jobs/s"),
                Column(key="future", title="future: jobs/s"),
                Column(key="future_ratio", title="to empty"),
                Column(key="other", title="other queues: jobs/s"),
                Column(key="other_ratio", title="to empty"),
                Column(key="kept", title="kept: jobs/s"),
                Column(key="kept_ratio", title="to empty"),
                Column(key="empty_blocks", title="empty: blocks/job"),
                Column(key="future_blocks", title="future"),
                Column(key="other_blocks", title="other queues"),
                Column(key="kept_blocks", title="kept"),
            ),
            leads="future",
            better=Better.HIGH,
            measure=_measure,
            most_rounds=2,
        ),
        Case(
            name="archive",
            title="Drains beside ten million archived jobs",
            systems=(OURS,),
            columns=(
                Column(key="ratio", title="to empty"),
                Column(key="kept", title="kept: jobs/s"),
                Column(key="empty", title="empty: jobs/s"),
                Column(key="rows", title="archived jobs"),
            ),
            leads="ratio",
            better=Better.HIGH,
            measure=_archive,
            most_rounds=2,
        ),
    ),
    why=(
        "The index by which django-tasks-db, django-ox, procrastinate and pgqueuer "
        "claim is ordered by priority and then by age, with the due time as a filter: "
        "jobs of the future are walked over at each claim, if they come first in that "
        "order. Our index begins with the queue and has the due time in its order, and "
        "finished jobs are in a table of their own."
    ),
    aims=(
        Aim(
            text="Beside future jobs: at least 0.9 × the rate of empty tables",
            figure=_ratio("rows", "future_ratio"),
            at_least=0.9,
        ),
        Aim(
            text="Beside other queues: at least 0.9 × the rate of empty tables",
            figure=_ratio("rows", "other_ratio"),
            at_least=0.9,
        ),
        Aim(
            text="Beside a million archived jobs: at least 0.9 × the rate without",
            figure=_ratio("rows", "kept_ratio"),
            at_least=0.9,
        ),
        Aim(
            text="Beside ten million archived jobs: at least 0.9 × the rate without",
            figure=_ratio("archive", "ratio"),
            at_least=0.9,
        ),
    ),
)
