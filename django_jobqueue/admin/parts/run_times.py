"""A histogram of run times, as bars and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import display
from django_jobqueue.domain.histogram import BOUNDS
from django_jobqueue.text import numbers

HEIGHT: Final = 96
STEP: Final = 20  # from bar to bar
FEWEST: Final = 8  # bars, so that one alone does not fill the page


@dataclass(frozen=True, slots=True)
class Bar:
    """One bucket. Coordinates are text: no locale writes them otherwise."""

    x: str
    y: str
    height: str
    label: str  # "≤ 180 ms"
    count: str

    @property
    def title(self) -> str:
        """The tooltip."""
        return f"{self.label}: {self.count}"


class RunTimes(NamedTuple):
    """The bars from the first to the last bucket that has something."""

    bars: Sequence[Bar]
    summary: str

    @property
    def width(self) -> str:
        """Of the whole drawing."""
        return str(STEP * max(FEWEST, len(self.bars)))

    @property
    def first(self) -> str:
        """Where the axis begins."""
        return self.bars[0].label

    @property
    def last(self) -> str:
        """Where it ends."""
        return self.bars[-1].label if len(self.bars) > 1 else ""

    @property
    def height(self) -> str:
        """Of the whole drawing."""
        return str(HEIGHT)


def run_times(histogram: Sequence[int], summary: str) -> RunTimes | None:
    """The drawing of a histogram; None of an empty one."""
    used = [index for index, count in enumerate(histogram) if count]
    if not used:
        return None
    most = max(histogram)
    bars = [
        _bar(place, index, histogram[index], most)
        for place, index in enumerate(range(used[0], used[-1] + 1))
    ]
    return RunTimes(bars, summary)


def at_most(seconds: float | None) -> str:
    """A percentile: the true one is not greater."""
    if seconds is None:
        return display.NOTHING
    return f"≤ {numbers.duration(round(seconds * 1_000))}"


def _bar(place: int, index: int, count: int, most: int) -> Bar:
    height = max(2, round(HEIGHT * count / most)) if count else 0
    return Bar(
        x=str(place * STEP),
        y=str(HEIGHT - height),
        height=str(height),
        label=_label(index),
        count=numbers.number(count),
    )


def _label(index: int) -> str:
    if index < len(BOUNDS):
        return at_most(BOUNDS[index])
    return _("more than a day")
