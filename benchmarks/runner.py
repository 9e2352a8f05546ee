"""Asks the questions, round by round, every system in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from benchmarks.figures import number
from benchmarks.presence import lack
from benchmarks.processes import Failed
from benchmarks.questions.base import Case, Question, Values
from benchmarks.results import Entry, Results
from benchmarks.site import Site
from benchmarks.systems.base import System


@dataclass
class Runner:
    """One run; ``say`` is told of each trial."""

    site: Site
    results: Results
    say: Callable[[str], None]
    systems: Sequence[str] | None = None  # names of those that take part; None: all
    _began: float = field(default_factory=time.monotonic)

    def run(self, questions: Sequence[Question]) -> None:
        """Ask them all.

        In a round each system has its turn in each case before the next round begins,
        so that the machine's good and bad minutes fall on all of them. A trial that
        fails is noted, and the run goes on.
        """
        before = self.results.seconds
        for question in questions:
            for number_ in range(self.results.rounds):
                for case in question.cases:
                    if number_ < (case.most_rounds or self.results.rounds):
                        self._ask(question, case, number_)
            self.results.finished.append(question.name)
            self.results.seconds = before + time.monotonic() - self._began

    def _takes_part(self, system: System) -> bool:
        if lack(system):
            return False
        return self.systems is None or system.name in self.systems

    def _ask(self, question: Question, case: Case, round_: int) -> None:
        systems = [s for s in case.systems if self._takes_part(s)]
        for group in _turns(case, systems, round_):
            what = f"{question.name}/{case.name} {round_ + 1}"
            try:
                found = answers(self.site, case, group)
            except (Failed, psycopg.Error) as error:
                names = ", ".join(system.name for system in group)
                self.results.failed.append(f"{what} {names}")
                self.say(f"{self._clock()}  {what:18} {names} FAILED: {error}")
                continue
            for name, values in found.items():
                entry = Entry(
                    question=question.name,
                    case=case.name,
                    system=name,
                    round=round_,
                    values=values,
                )
                self.results.entries.append(entry)
                self.say(f"{self._clock()}  {what:18} {name:24} {_brief(values)}")

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.0f} s"


def _turns(
    case: Case, systems: Sequence[System], round_: int
) -> Iterator[Sequence[System]]:
    """Who is measured at once; each round begins with another system."""
    if case.together is not None:
        yield from [systems] if systems else []
        return
    for i in range(len(systems)):
        yield [systems[(i + round_) % len(systems)]]


def answers(site: Site, case: Case, systems: Sequence[System]) -> Mapping[str, Values]:
    """What these systems came to."""
    if case.together is not None:
        return case.together(site, systems)
    assert case.measure is not None
    return {system.name: case.measure(site, system) for system in systems}


def _brief(values: Values) -> str:
    return "  ".join(
        f"{key} {'–' if value is None else number(value)}"
        for key, value in values.items()
    )
