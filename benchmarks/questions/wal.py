"""How much does a job write to the write-ahead log in its whole life?"""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks.drains import drain
from benchmarks.processes import wait_for
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site, Trial
from benchmarks.systems import ON_POSTGRES, OURS
from benchmarks.systems.base import Load, System

SINGLES: Final = 2_000
RATE: Final = 200.0  # singles a second
BATCH: Final = 1_000  # jobs that the bare statements take at once
COLUMNS: Final = (
    Column(key="bytes", title="bytes/job"),
    Column(key="bare_bytes", title="bare statements"),
    Column(key="ratio", title="to these"),
    Column(key="jobs", title="jobs"),
)


def _bulk(site: Site, system: System) -> Values:
    jobs = site.jobs(system.sizes.drain)
    with site.trial(system) as trial:
        trial.analyse()
        before = _settled(trial)
        trial.fill(jobs)
        drain(trial, Load.DRAIN, jobs)
        written = trial.database.wal() - before
    found = {"bytes": written / jobs, "jobs": jobs}
    if system is OURS:
        found |= _beside(found["bytes"], _bare_bulk(site, jobs))
    return found


def _single(site: Site, system: System) -> Values:
    jobs = site.jobs(SINGLES)
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        trial.analyse()
        workers = trial.start(Load.PICKUP)
        enqueuer.many(1)
        wait_for(partial(trial.journal.has, 1), 60, workers, "the first job")
        before = _settled(trial)
        enqueuer.steady(1, jobs, RATE, 0)
        wait_for(partial(trial.journal.has, 1 + jobs), 60, workers, "the jobs")
        wait_for(lambda: trial.running() == 0, 60, workers, "their record")
        written = trial.database.wal() - before
    found = {"bytes": written / jobs, "jobs": jobs}
    if system is OURS:
        found |= _beside(found["bytes"], _bare_single(site, jobs))
    return found


def _bare_bulk(site: Site, jobs: int) -> float:
    """Bytes that the bare statements write for a job, with a checkpoint between as
    every drain has it."""
    with site.trial(OURS) as trial:
        trial.analyse()
        before = _settled(trial)
        trial.bare(do="copy", jobs=jobs)
        trial.place.settle()
        trial.bare(do="drain", batch=BATCH, at_once=1)
        return (trial.database.wal() - before) / jobs


def _bare_single(site: Site, jobs: int) -> float:
    with site.trial(OURS) as trial:
        trial.analyse()
        before = _settled(trial)
        trial.bare(do="singles", jobs=jobs)
        return (trial.database.wal() - before) / jobs


def _settled(trial: Trial) -> int:
    """The position after a checkpoint, from which whole pages are written again."""
    trial.place.settle()
    return trial.database.wal()


def _beside(written: float, bare: float) -> dict[str, float]:
    return {"bare_bytes": bare, "ratio": written / bare}


QUESTION: Final = Question(
    name="wal",
    title="The write-ahead log",
    asked=(
        "Bytes of the write-ahead log per job, from the first enqueue until all jobs "
        "are recorded as finished: enqueued in bulk and drained, or one by one, "
        f"{RATE:g} per second."
    ),
    cases=(
        Case(
            name="bulk",
            title="In bulk",
            systems=ON_POSTGRES,
            columns=COLUMNS,
            leads="bytes",
            better=Better.LOW,
            measure=_bulk,
            most_rounds=2,
        ),
        Case(
            name="single",
            title="One by one",
            systems=ON_POSTGRES,
            columns=COLUMNS,
            leads="bytes",
            better=Better.LOW,
            measure=_single,
            most_rounds=1,
        ),
    ),
    why=(
        "A job of ours is a row of the queue, an update, a delete and a row of the "
        "archive. graphile-worker and pgqueuer delete finished jobs (pgqueuer writes "
        "three log rows); the others update one row with all of its indexes."
    ),
    aims=(
        Aim(
            text="In bulk: at most 1.1 × the bare statements",
            figure=lambda r: r.median("wal/bulk", OURS.name, "ratio"),
            at_most=1.1,
        ),
        Aim(
            text="One by one: at most 1.1 × the bare statements",
            figure=lambda r: r.median("wal/single", OURS.name, "ratio"),
            at_most=1.1,
        ),
    ),
)
