"""How long does it take from the start of the command to the first job?"""

from __future__ import annotations

import statistics
import time
from typing import Final

from benchmarks.processes import Command, wait_for
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site, Trial
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import Load, System, django

TIMES: Final = 5
PATIENCE: Final = 60.0  # seconds


def _measure(site: Site, system: System) -> Values:
    starts, checks = [], []
    with site.trial(system) as trial:
        for number in range(TIMES):
            starts.append(_start(trial, number))
            if system.is_django:
                checks.append(_check(trial))
    found = {"seconds": statistics.median(starts)}
    if checks:
        check = statistics.median(checks)
        found |= {"check": check, "ratio": found["seconds"] / check}
    return found


def _start(trial: Trial, number: int) -> float:
    """Seconds from the start of the workers to that of the one job that waits."""
    trial.fill(1, first=number)
    began = time.monotonic_ns()
    workers = trial.start(Load.PICKUP)
    wait_for(lambda: number in trial.journal.starts(), PATIENCE, workers, "the job")
    wait_for(lambda: trial.running() == 0, PATIENCE, workers, "its record")
    workers.kill()
    return (trial.journal.starts()[number][0] - began) / 1e9


def _check(trial: Trial) -> float:
    """Seconds of Django's own command that only looks at the project."""
    began = time.monotonic()
    trial.call(Command(arguments=django("check")))
    return time.monotonic() - began


QUESTION: Final = Question(
    name="start",
    title="Start-up",
    asked=(
        "One job waits, and the command of the workers is started. Measured until the "
        f"first line of the handler, the median of {TIMES}. `manage.py check`, which "
        "only loads Django and the project, takes turns with the systems that are "
        "Django apps."
    ),
    cases=(
        Case(
            name="first",
            title="From the command to the first job",
            systems=ALL,
            columns=(
                Column(key="seconds", title="seconds"),
                Column(key="check", title="`manage.py check`"),
                Column(key="ratio", title="to that"),
            ),
            leads="seconds",
            better=Better.LOW,
            measure=_measure,
            most_rounds=2,
        ),
    ),
    why=(
        "Loading code takes most of the time, so systems without Django start earlier. "
        "By a profile (Python 3.11), a third of it is Django with its admin, and half "
        "is ours: 570 modules, of which 147 are the admin's; making 258 dataclasses "
        "is a quarter of the whole. Our worker is forked and loads nothing twice."
    ),
    aims=(
        Aim(
            text="At most 1.2 × `manage.py check`",
            figure=lambda r: r.median("start/first", OURS.name, "ratio"),
            at_most=1.2,
        ),
    ),
)
