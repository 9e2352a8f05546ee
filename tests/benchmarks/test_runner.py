"""Rounds: every system has its turn, and a trial that fails does not end the run."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from benchmarks.processes import Failed
from benchmarks.questions.base import Better, Case, Column, Question, Values
from benchmarks.runner import Runner
from benchmarks.site import Site
from benchmarks.systems import OURS, PGQUEUER, PROCRASTINATE
from benchmarks.systems.base import System
from tests.benchmarks.made import results

SITE = cast(Site, None)  # nothing here takes place anywhere
SYSTEMS = (OURS, PGQUEUER, PROCRASTINATE)


def asking(*cases: Case) -> Question:
    return Question(name="speed", title="Speed", asked="How fast?", cases=cases)


class Measured:
    """A case that counts its trials; one system may fail in one of them."""

    def __init__(self, fails: tuple[System, int] | None = None) -> None:
        self.order: list[str] = []
        self.fails = fails

    def measure(self, site: Site, system: System) -> Values:
        self.order.append(system.name)
        if self.fails == (system, self.order.count(system.name)):
            raise Failed("It died.")
        return {"x": len(self.order)}

    def case(self, name: str, most_rounds: int | None = None) -> Case:
        return Case(
            name=name,
            title=name,
            systems=SYSTEMS,
            columns=(Column(key="x", title="x"),),
            leads="x",
            better=Better.HIGH,
            measure=self.measure,
            most_rounds=most_rounds,
        )


def test_each_round_begins_with_another_system() -> None:
    measured, made = Measured(), results()
    Runner(SITE, made, lambda line: None).run([asking(measured.case("one"))])
    names = [system.name for system in SYSTEMS]
    turns = [names[n:] + names[:n] for n in range(3)]
    assert measured.order == [name for turn in turns for name in turn]
    assert [e.system for e in made.entries] == measured.order
    assert [e.round for e in made.entries] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert made.finished == ["speed"]
    measured = Measured()  # fewer rounds, without some systems
    runner = Runner(SITE, results(), lambda line: None, [OURS.name])
    runner.run([asking(measured.case("one", most_rounds=2))])
    assert measured.order == [OURS.name] * 2


def test_a_trial_that_fails_is_noted_and_the_run_goes_on() -> None:
    measured, made, said = Measured(fails=(PGQUEUER, 2)), results(), list[str]()
    Runner(SITE, made, said.append).run([asking(measured.case("one"))])
    assert made.failed == ["speed/one 2 pgqueuer"]
    assert len(made.entries) == 8
    assert len(measured.order) == 9
    assert [line for line in said if "FAILED: It died." in line] == [said[3]]


def test_systems_that_are_measured_at_once_are_asked_together() -> None:
    asked: list[list[str]] = []

    def together(site: Site, systems: object) -> dict[str, Values]:
        names = [system.name for system in cast(list[System], systems)]
        asked.append(names)
        return {name: {"x": None} for name in names}

    case = replace(Measured().case("idle", 1), measure=None, together=together)
    made = results()
    Runner(SITE, made, lambda line: None).run([asking(case)])
    assert asked == [[system.name for system in SYSTEMS]]
    assert made.values("speed/idle", PGQUEUER.name, "x") == [None]
