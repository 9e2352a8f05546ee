"""Shapes of charts."""

from __future__ import annotations

from django_jobqueue.admin.parts.charts import Decades, bars, line, spark, top


def test_an_axis_ends_at_a_round_number() -> None:
    ends = {0: 2, 1: 2, 2: 2, 3: 5, 5: 5, 6: 10, 11: 20, 49: 50, 501: 1_000}
    assert {most: top(most) for most in ends} == ends


def test_the_parts_of_a_bar_stand_on_each_other() -> None:
    (bar,) = bars([("now", [("failed", 10), ("other", 0), ("succeeded", 40)])], 100)
    assert [(part.style, part.y, part.height) for part in bar.parts] == [
        ("failed", "90", "10"),
        ("succeeded", "50", "40"),
    ]


def test_what_is_not_zero_is_seen() -> None:
    (bar,) = bars([("now", [("failed", 1)])], 1_000_000)
    assert [part.height for part in bar.parts] == ["1.5"]


def test_a_bar_never_leaves_the_drawing() -> None:
    (bar,) = bars([("now", [("failed", 1), ("succeeded", 1_000)])], 1_000)
    assert sum(float(part.height) for part in bar.parts) <= 100


def test_a_gap_is_a_gap() -> None:
    first, last = bars([("a", [("failed", 1)]), None, ("c", [("failed", 1)])], 1)
    assert (first.x, last.x) == ("1", "21")


def test_a_line_begins_anew_after_a_gap() -> None:
    scale = Decades([0.1, 10.0])
    assert scale.marks == [10.0, 1.0, 0.1]
    drawn = line("wait", [0.1, 10.0, None, 1.0], scale)
    assert drawn.path == "M5 100h0L15 0h0M35 50h0"


def test_an_axis_has_two_marks_at_least() -> None:
    values: list[list[float | None]] = [[], [None], [0.0], [1.0]]
    assert [Decades(few).marks for few in values] == [[10.0, 1.0]] * 4


def test_what_is_below_the_axis_lies_on_it() -> None:
    assert Decades([1.0, 100.0]).y(0.0) == 100.0
    assert Decades([1.0, 100.0]).y(1e9) == 0.0


def test_a_sparkline_shows_all_and_what_failed() -> None:
    drawn = spark([[10, 0], [0, 0], [5, 5]], "15 finished")
    assert drawn.all == "M1 20V0h8V20M21 20V10h8V20"
    assert drawn.failed == "M21 20V10h8V20"
    assert (drawn.width, drawn.summary) == ("30", "15 finished")
