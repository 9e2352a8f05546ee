"""Combinations of options such that every two values meet in one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import Any

Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairwise(options: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Few combinations of one value of each option, with every pair of values of two
    options in at least one. The same ones each time; values are hashable."""
    values = {name: list(dict.fromkeys(given)) for name, given in options.items()}
    wanted = {
        ((one, a), (other, b)): None
        for one, other in combinations(values, 2)
        for a, b in product(values[one], values[other])
    }
    made: list[dict[str, Any]] = []
    while wanted:
        made.append(_next(values, wanted))
        for pair in _pairs(made[-1]):
            wanted.pop(pair, None)
    return made


def _next(values: Mapping[str, list[Any]], wanted: Mapping[Pair, None]) -> Any:
    """A combination with the first wanted pair, and greedily as many more as it has
    room for."""
    case = dict(next(iter(wanted)))
    for name, choices in values.items():
        if name not in case:
            case[name] = max(
                choices, key=lambda value: _gain(values, {**case, name: value}, wanted)
            )
    return {name: case[name] for name in values}


def _gain(
    values: Mapping[str, list[Any]], case: Mapping[str, Any], wanted: Mapping[Pair, Any]
) -> int:
    ordered = {name: case[name] for name in values if name in case}
    return sum(pair in wanted for pair in _pairs(ordered))


def _pairs(case: Mapping[str, Any]) -> Iterable[Pair]:
    return combinations(case.items(), 2)
