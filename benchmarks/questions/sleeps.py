"""How many jobs that wait for something else does one process run at once?"""

from __future__ import annotations

from typing import Final

from benchmarks.drains import drain
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import Load, System

MS: Final = 100
COLUMNS: Final = (
    Column(key="jobs_per_s", title="jobs/s"),
    Column(key="jobs", title="jobs"),
    Column(key="seconds", title="seconds"),
    Column(key="most_at_once", title="most at once"),
    Column(key="worker_us", title="worker CPU µs/job"),
)


def _sleep(site: Site, system: System, load: Load, jobs: int) -> Values:
    jobs = site.jobs(jobs)
    with site.trial(system) as trial:
        trial.fill(jobs, ms=MS, is_async=load is Load.ASYNC)
        trial.analyse()
        found = drain(trial, load, jobs, ms=MS)
    return {
        "jobs_per_s": found.jobs_per_s,
        "jobs": found.jobs,
        "seconds": found.seconds,
        "most_at_once": found.most_at_once,
        "worker_us": found.worker_us,
    }


def _async(site: Site, system: System) -> Values:
    return _sleep(site, system, Load.ASYNC, system.sizes.async_sleeps)


def _sync(site: Site, system: System) -> Values:
    return _sleep(site, system, Load.SYNC, system.sizes.sync_sleeps)


QUESTION: Final = Question(
    name="sleeps",
    title="Sleeping jobs",
    asked=(
        f"Jobs that sleep {MS} ms, in one worker process, measured as a drain. With "
        "100 threads, 5,000 jobs cannot take less than 5 s. Threads of procrastinate "
        "cannot be set, and django-tasks-db runs one job at a time."
    ),
    cases=(
        Case(
            name="async",
            title="Async handlers",
            systems=[system for system in ALL if system.sizes.async_sleeps],
            columns=COLUMNS,
            leads="jobs_per_s",
            better=Better.HIGH,
            measure=_async,
            most_rounds=2,
        ),
        Case(
            name="sync",
            title="Sync handlers on 100 threads",
            systems=[system for system in ALL if system.sizes.sync_sleeps],
            columns=COLUMNS,
            leads="jobs_per_s",
            better=Better.HIGH,
            measure=_sync,
            most_rounds=2,
        ),
    ),
    why=(
        "The rate of claims decides how many jobs sleep at once: who claims one job "
        "per round trip does not fill its slots."
    ),
    aims=(
        Aim(
            text="5,000 async jobs in at most 1.5 s",
            figure=lambda r: r.median("sleeps/async", OURS.name, "seconds"),
            at_most=1.5,
        ),
        Aim(
            text="5,000 sync jobs on 100 threads in less than 7 s",
            figure=lambda r: r.median("sleeps/sync", OURS.name, "seconds"),
            at_most=7,
        ),
    ),
)
