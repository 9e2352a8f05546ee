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
            trial.fill(jobs, first=before)
            if not run_out(trial, workers, before + jobs, LONGEST):
                raise Failed(f"{jobs} jobs took more than {LONGEST:g} s.")
            time.sleep(REST)
            seen.append(memory(trial.journal.pids()))
        everybody = memory(workers.pids())
    if bare is not None:
        over["over_bare_mb"] = seen[-1].rss - bare.rss
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
        "One worker process is given jobs that do nothing, in three lots, of which "
        "the second and third are large, and is looked at a second after each. RSS "
        "and PSS (where pages that several processes share are divided among them) "
        'are those of the process that runs handlers; "over bare" is the difference '
        "to a process that has only called `django.setup()` with the same settings. "
        '"All processes" are those that the command started: at django_jobqueue also '
        'a supervisor and a keeper. "Growth" is from the end of the second lot to the '
        "end of the third."
    ),
    cases=(
        Case(
            name="worker",
            title="A worker process",
            systems=ALL,
            columns=(
                Column(key="rss_mb", title="RSS MiB"),
                Column(key="over_bare_mb", title="RSS over bare"),
                Column(key="pss_mb", title="PSS MiB"),
                Column(key="everybody_pss_mb", title="PSS of all processes"),
                Column(key="everybody_over_bare_mb", title="over bare"),
                Column(key="early_rss_mb", title="RSS after the first lot"),
                Column(key="growth_mb", title="growth"),
                Column(key="jobs", title="jobs"),
            ),
            leads="everybody_pss_mb",
            better=Better.LOW,
            measure=_measure,
            most_rounds=1,
        ),
    ),
    why=(
        "The Django that all of a project's processes load is the greatest part where "
        "there is one; pgqueuer and procrastinate were run without Django, and are "
        "smaller for it. Our worker is forked from its supervisor and shares pages "
        "with it, so its own figures flatter it: the PSS of all processes is what a "
        "host pays."
    ),
    aims=(
        Aim(
            text="RSS at most 60 MiB over the bare project",
            figure=lambda r: r.median("memory/worker", OURS.name, "over_bare_mb"),
            at_most=60,
        ),
        Aim(
            text="Flat: the last 100,000 of 200,000 jobs add at most 2 MiB",
            figure=lambda r: r.median("memory/worker", OURS.name, "growth_mb"),
            at_most=2,
        ),
    ),
)
