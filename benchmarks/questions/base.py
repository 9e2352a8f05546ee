"""What a question is: cases to measure, columns to show, and aims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from benchmarks.results import Results
from benchmarks.site import Site
from benchmarks.systems.base import System

# What one trial came to. None: not in the time that was given.
Values = Mapping[str, float | None]
Measure = Callable[[Site, System], Values]
MeasureTogether = Callable[[Site, Sequence[System]], Mapping[str, Values]]


class Better(Enum):
    """Which of two figures is the better one."""

    HIGH = "high"
    LOW = "low"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A figure of a trial, and its heading."""

    key: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """One table: the same measurement of several systems.

    ``leads`` is the key of the figure that tells who is first; the page shows it, and
    those of ``also``. Systems that hardly use the machine are measured at once, by
    ``together``; all others one after the other, by ``measure``.
    """

    name: str
    title: str
    systems: Sequence[System]
    columns: Sequence[Column]
    leads: str
    better: Better
    also: Sequence[str] = ()
    measure: Measure | None = None
    together: MeasureTogether | None = None
    most_rounds: int | None = None
    never: str = ""  # what is shown for None


@dataclass(frozen=True, kw_only=True)
class Aim:
    """What we want to reach; the figure is None if it was not measured."""

    text: str
    figure: Callable[[Results], float | None]
    at_least: float | None = None
    at_most: float | None = None
    reason: str = ""  # why it may not be reached; told only then

    def is_reached(self, figure: float) -> bool:
        """Whether this is good enough."""
        enough = self.at_least is None or figure >= self.at_least
        return enough and (self.at_most is None or figure <= self.at_most)


def to_best_other(
    case: str, key: str, systems: Sequence[System], best: Callable[..., float]
) -> Callable[[Results], float | None]:
    """How the figure of the first system compares with the ``best`` (``max`` or
    ``min``) of the others."""

    def figure(results: Results) -> float | None:
        ours, *others = (results.median(case, system.name, key) for system in systems)
        known = [value for value in others if value]
        return ours / best(known) if ours is not None and known else None

    return figure


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something to be found out about all systems. The texts are Markdown."""

    name: str
    title: str
    asked: str  # what is measured, and how
    cases: Sequence[Case]
    why: str = ""  # what makes the systems fast or slow at it
    aims: Sequence[Aim] = ()
