"""How much memory does a worker take, and does it stay at that?"""

from __future__ import annotations

import sys
import time
from typing import Final

from benchmarks.drains import LONGEST, run_out
from benchmarks.journal import Kind
from benchmarks.processes import Command, Failed, Memory, memory, wait_for
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import Load, System

STEP: Final = 100_000  # jobs that are enqueued at once
REST: Final = 1.0  # seconds after the last record
BARE: Final = """
import signal, django
from benchmarks.journal import Kind, mark
django.setup()
mark(0, Kind.START)
signal.pause()
"""


def _measure(site: Site, system: System) -> Values:
    sizes = [site.jobs(jobs) for jobs in system.sizes.memory]
    over: dict[str, float] = {}
    bare = _bare_project(site, system) if system.is_django else None
    with site.trial(system) as trial:
        workers = trial.start(Load.DRAIN)
        seen: list[Memory] = []
        for i, jobs in enumerate(sizes):
            before = sum(sizes[:i])
            for start in range(0, jobs, STEP):
                step = min(STEP, jobs - start)
                trial.fill(step, first=before + start)
                if not run_out(trial, workers, before + start + step, LONGEST):
                    raise Failed(f"{step} jobs took more than {LONGEST:g} s.")
            time.sleep(REST)
            seen.append(memory(trial.journal.pids()))
        everybody = memory(workers.pids())
        supervisors = workers.started() - trial.journal.pids()
        if supervisors:
            over["supervisor_mb"] = memory(supervisors).pss
    if bare is not None:
        over["over_bare_mb"] = seen[-1].pss - bare.pss
        over["everybody_over_bare_mb"] = everybody.pss - bare.pss
    return {
        "rss_mb": seen[-1].rss,
        **over,
        "early_rss_mb": seen[0].rss,
        "growth_mb": seen[-1].rss - seen[-2].rss,
        "pss_mb": seen[-1].pss,
        "everybody_pss_mb": everybody.pss,
        "jobs": sum(sizes),
    }


def _bare_project(site: Site, system: System) -> Memory:
    """That of a process which has only set Django up, with the same settings."""
    with site.trial(system) as trial:
        process = trial.run(Command(arguments=(sys.executable, "-c", BARE)))
        wait_for(lambda: trial.journal.records(Kind.START), 30, process, "Django")
        return memory(process.pids())


QUESTION: Final = Question(
    name="memory",
    title="Memory",
    asked=(
        "One worker process is given jobs that do nothing in three lots, of which the "
        "third has 1,000,000 jobs for django_jobqueue, and for others what takes some "
        'seconds. PSS divides shared pages among the processes that share them. "All '
        'processes" includes supervisor and maintenance process. "Growth" is that of '
        "the RSS (MiB) during the third lot."
    ),
    cases=(
        Case(
            name="worker",
            title="A worker process",
            systems=ALL,
            columns=(
                Column(key="pss_mb", title="PSS MiB"),
                Column(key="over_bare_mb", title="over bare"),
                Column(key="supervisor_mb", title="PSS of the supervisor"),
                Column(key="everybody_pss_mb", title="PSS of all processes, MiB"),
                Column(key="everybody_over_bare_mb", title="over bare"),
                Column(key="rss_mb", title="RSS MiB"),
                Column(key="early_rss_mb", title="RSS after the first lot"),
                Column(key="growth_mb", title="growth, MiB"),
                Column(key="jobs", title="jobs"),
            ),
            leads="everybody_pss_mb",
            also=("growth_mb",),
            better=Better.LOW,
            measure=_measure,
            most_rounds=1,
        ),
    ),
    why=(
        "Where Django is loaded, it is the largest part; pgqueuer, chancy, "
        "procrastinate, celery and dramatiq ran without it. Our workers are forked "
        "from the supervisor and share its pages, so its share shrinks with more "
        "workers."
    ),
    aims=(
        Aim(
            text="A worker: at most 35 MiB PSS over the bare project",
            figure=lambda r: r.median("memory/worker", OURS.name, "over_bare_mb"),
            at_most=35,
        ),
        Aim(
            text="The supervisor: at most 15 MiB PSS",
            figure=lambda r: r.median("memory/worker", OURS.name, "supervisor_mb"),
            at_most=15,
            reason=(
                "This is its share of the pages of Django and the project, which "
                "three processes share here, and of copies that a fork causes."
            ),
        ),
        Aim(
            text="Flat: 1,000,000 jobs add at most 2 MiB",
            figure=lambda r: r.median("memory/worker", OURS.name, "growth_mb"),
            at_most=2,
        ),
    ),
)
