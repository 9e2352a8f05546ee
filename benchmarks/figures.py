"""The few statistics that are needed, and how figures are written."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def percentile(values: Iterable[float], percent: float) -> float:
    """The least value that is not below this share of them (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


@dataclass(frozen=True)
class Summary:
    """A median and its range over the rounds of a run."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def number(value: float) -> str:
    """A figure in three digits, and no decimals of a whole one: 0.84, 12,300, 4."""
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.{max(0, digits) if value % 1 else 0}f}"


def spread(summary: Summary) -> str:
    """The median, with the range behind it if there is one."""
    lowest, median, highest = (
        number(summary.lowest),
        number(summary.median),
        number(summary.highest),
    )
    return median if lowest == highest else f"{median} ({lowest} … {highest})"
