"""Does a transaction that stays open slow down the claims?"""

from __future__ import annotations

from typing import Final

from benchmarks.drains import drain
from benchmarks.questions.base import (
    Aim,
    Better,
    Case,
    Column,
    Measure,
    Question,
    Values,
)
from benchmarks.site import Site, Trial
from benchmarks.systems import ON_POSTGRES, OURS
from benchmarks.systems.base import Load, System

CHURN: Final = 200_000
STEP: Final = 10_000
LONGEST: Final = 10.0  # seconds of a drain
COLUMNS: Final = (
    Column(key="fresh", title="fresh: jobs/s"),
    Column(key="aged", title="aged: jobs/s"),
    Column(key="ratio", title="aged to fresh"),
    Column(key="fresh_blocks", title="fresh: blocks/job"),
    Column(key="aged_blocks", title="aged"),
)


def _measure(*, is_cold: bool) -> Measure:
    def measure(site: Site, system: System) -> Values:
        jobs = site.jobs(system.sizes.crowded)
        found = []
        for churned in (0, site.jobs(CHURN)):
            with (
                site.trial(system) as trial,
                site.server.connect(trial.database.name) as old,
            ):
                old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                old.execute("SELECT count(*) FROM pg_class")
                _churn(trial, churned)
                trial.analyse()
                trial.fill(jobs)
                if not is_cold:
                    trial.analyse()
                found.append(drain(trial, Load.DRAIN, jobs, longest=LONGEST))
                old.execute("ROLLBACK")
        fresh, aged = found
        return {
            "fresh": fresh.jobs_per_s,
            "aged": aged.jobs_per_s,
            "ratio": aged.jobs_per_s / fresh.jobs_per_s,
            "fresh_blocks": fresh.blocks,
            "aged_blocks": aged.blocks,
        }

    return measure


def _churn(trial: Trial, jobs: int) -> None:
    """Put this many jobs through their life, in SQL."""
    connection, system = trial.database.connection, trial.system
    connection.execute(f"CREATE TEMP TABLE churned (id {system.churn_key})".encode())
    for _ in range(0, jobs, STEP):
        for statement in system.churn:
            connection.execute(statement.format(n=min(jobs, STEP)).encode())
        connection.execute("TRUNCATE churned")


def _case(name: str, title: str, measure: Measure) -> Case:
    return Case(
        name=name,
        title=title,
        systems=ON_POSTGRES,
        columns=COLUMNS,
        leads="aged",
        also=("fresh",),
        better=Better.HIGH,
        measure=measure,
        most_rounds=2,
    )


QUESTION: Final = Question(
    name="stale",
    title="Beside a long transaction",
    asked=(
        "A drain by one process while a REPEATABLE READ transaction is open: at once "
        f"(fresh), and after {CHURN:,} jobs were enqueued and finished meanwhile, "
        "whose dead rows cannot be removed (aged)."
    ),
    cases=(
        _case("analysed", "Analysed with the jobs", _measure(is_cold=False)),
        _case("cold", "Analysed before the jobs came", _measure(is_cold=True)),
    ),
    why=(
        "A claim that starts at the left end of its index walks over all dead entries "
        "each time. Ours starts where the last one ended, and looks from the left end "
        "in a twentieth of the time."
    ),
    aims=(
        Aim(
            text="Analysed: at least 0.8 × the fresh rate",
            figure=lambda r: r.median("stale/analysed", OURS.name, "ratio"),
            at_least=0.8,
        ),
        Aim(
            text="Analysed before: at least 0.8 × the fresh rate",
            figure=lambda r: r.median("stale/cold", OURS.name, "ratio"),
            at_least=0.8,
        ),
    ),
)
