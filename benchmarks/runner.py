"""Asks the questions, round by round, every system in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.figures import number
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
        so that the machine's good and bad minutes fall on all of them.
        """
        for question in questions:
            for number_ in range(self.results.rounds):
                for case in question.cases:
                    if number_ < (case.most_rounds or self.results.rounds):
                        self._ask(question, case, number_)
        self.results.seconds = time.monotonic() - self._began

    def _takes_part(self, system: System) -> bool:
        return self.systems is None or system.name in self.systems

    def _ask(self, question: Question, case: Case, round_: int) -> None:
        systems = [s for s in case.systems if self._takes_part(s)]
        for system, values in _answers(self.site, case, systems, round_):
            self.results.entries.append(
                Entry(
                    question=question.name,
                    case=case.name,
                    system=system.name,
                    round=round_,
                    values=values,
                )
            )
            passed = time.monotonic() - self._began
            what = f"{question.name}/{case.name} {round_ + 1}"
            self.say(f"{passed:6.0f} s  {what:18} {system.name:24} {_brief(values)}")


def _answers(
    site: Site, case: Case, systems: Sequence[System], round_: int
) -> Iterator[tuple[System, Values]]:
    """What each system of the case came to; each round begins with another one."""
    if case.together is not None:
        found = case.together(site, systems)
        yield from ((system, found[system.name]) for system in systems)
        return
    assert case.measure is not None
    for i in range(len(systems)):
        system = systems[(i + round_) % len(systems)]
        yield system, case.measure(site, system)


def _brief(values: Values) -> str:
    return "  ".join(
        f"{key} {'–' if value is None else number(value)}"
        for key, value in values.items()
    )
