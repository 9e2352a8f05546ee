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
    title="Beside rows that must not run",
    asked=(
        f"A drain by one process: in empty tables; beside {ROWS:,} jobs due in a year; "
        f"beside {ROWS:,} jobs of queues, or kinds, that the worker does not serve; "
        f"beside {ROWS:,} finished jobs as each system keeps them; ours also beside "
        f"{MANY:,} archived ones. Tables are vacuumed and analysed. A drain is cut off "
        f"after {LONGEST:g} s."
    ),
    cases=(
        Case(
            name="rows",
            title="A million of them",
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
            also=("empty", "other", "kept"),
            better=Better.HIGH,
            measure=_measure,
            most_rounds=2,
        ),
        Case(
            name="archive",
            title="Ten million archived jobs",
            systems=(OURS,),
            columns=(
                Column(key="ratio", title="of the rate in empty tables"),
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
        "The others' indexes for claims are ordered by priority and age with the due "
        "time as a filter, so a claim may walk over all future jobs. Ours begins with "
        "the queue, contains the due time, and has no finished jobs."
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
