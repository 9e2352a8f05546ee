"""The statistics of the benchmarks, and how figures are written."""

from __future__ import annotations

import pytest

from benchmarks.figures import Summary, number, percentile, spread


@pytest.mark.parametrize(
    ("percent", "value"), [(1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100), (0, 1)]
)
def test_a_percentile_is_the_least_value_that_is_not_below_that_share(
    percent: float, value: int
) -> None:
    assert percentile(range(100, 0, -1), percent) == value


def test_a_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7.0


def test_a_summary_is_the_median_and_the_range() -> None:
    assert Summary.of([3.0, 1.0, 10.0]) == Summary(3.0, 1.0, 10.0)
    assert Summary.of([1.0, 2.0]) == Summary(1.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0, "0"),
        (0.08437, "0.0844"),
        (0.84371, "0.844"),
        (1.996, "2.00"),
        (52.13, "52.1"),
        (523.4, "523"),
        (12_345.6, "12,300"),
        (50_000, "50,000"),
        (4, "4"),
        (4.0, "4"),
        (-2.218, "-2.22"),
    ],
)
def test_a_figure_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_the_range_is_shown_where_there_is_one() -> None:
    assert spread(Summary.of([2.5, 1.0, 4.0])) == "2.50 (1 … 4)"
    assert spread(Summary.of([2.5])) == "2.50"
    assert spread(Summary.of([1_000.1, 1_000.2])) == "1,000"
