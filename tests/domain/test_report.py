"""What an attempt tells while it runs: notes in memory, bounded and without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from django_jobqueue.domain.report import LINE_BYTES, MOST_BYTES, MOST_LINES, Report
from django_jobqueue.text.redaction import MASK
from tests.domain.made import context


def test_progress_is_what_was_told_last_and_a_checkin_leaves_the_numbers() -> None:
    made = context()
    assert made.report.is_changed is False
    made.progress(3, 10, "resizing")
    made.progress(4)
    assert repr(made.report) == "<Report: done=4, total=10, lines=0>"  # and no texts
    told = made.report.take()
    assert (told.done, told.total, told.note) == (4.0, 10.0, "resizing")
    made.checkin("asking the bank")
    told = made.report.take()
    assert (told.done, told.total, told.note) == (4.0, 10.0, "asking the bank")


def test_rows_are_counted_as_they_are_done() -> None:
    made, seen = context(), []
    for row in made.progress(["a", "b", "c"], note="letters"):
        seen.append((row, made.report.take().done))
    told = made.report.take()
    assert seen == [("a", 0.0), ("b", 1.0), ("c", 2.0)]
    assert (told.done, told.total, told.note) == (3.0, 3.0, "letters")


def test_rows_have_a_total_where_it_is_known_and_other_values_are_refused() -> None:
    async def rows() -> AsyncIterator[int]:
        for n in range(3):
            yield n

    async def read() -> list[int]:
        return [row async for row in made.progress(rows(), total=3)]

    made = context()
    assert list(made.progress(iter(range(3)))) == [0, 1, 2]
    assert made.report.take().total is None
    assert list(made.progress(iter(range(3)), total=3)) == [0, 1, 2]
    assert made.report.take().total == 3.0
    made = context()
    assert asyncio.run(read()) == [0, 1, 2]
    assert made.report.take().done == 3.0
    for row in made.progress(range(10)):
        if row == 4:
            break
    assert made.report.take().done == 4.0  # of a loop that is left
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            context().progress(number)
    wrong: Any = None
    with pytest.raises(TypeError):
        context().progress(wrong)


def test_lines_have_a_time_a_level_and_a_text() -> None:
    made = context()
    made.log("began")
    made.log(ValueError("no stock"), level="warning")
    first, second = made.report.take().lines
    assert (first[1:], second[1:]) == (("info", "began"), ("warning", "no stock"))
    assert first[0] <= second[0]
    with pytest.raises(ValueError, match="'loud'.*debug, info, warning"):
        made.log("x", level="loud")


def test_the_last_lines_are_kept_in_their_room_and_fit_to_be_stored() -> None:
    made = context()
    for n in range(MOST_LINES + 50):
        made.log(f"line {n}")
    told = made.report.take()
    assert len(told.lines) == MOST_LINES
    assert told.lines[-1][2] == f"line {MOST_LINES + 49}"
    assert told.dropped == 50
    made.log("one more")
    told = made.report.take()
    assert told.lines[-1][2] == "one more"
    assert told.dropped == 51
    made = context()
    for _ in range(100):
        made.log("ü" * 1_500)
    told = made.report.take()
    assert sum(len(text.encode()) for _, _, text in told.lines) <= MOST_BYTES
    assert len(told.lines) + told.dropped == 100
    made = context()
    made.log("a" * 1_000_000)
    made.log("nul \x00 and \ud800")
    (_, _, long), (_, _, odd) = made.report.take().lines
    assert len(long.encode()) <= LINE_BYTES
    assert "1,000,000 characters, cut here" in long
    assert odd == r"nul \x00 and \ud800"
    made = context()
    for n in range(MOST_LINES):
        made.log(f"line {n} " + "x" * 100, level="error")
    tail = made.report.tail()
    assert len(tail.encode()) <= 8_000
    assert tail.splitlines()[-1].endswith("ERROR line 199 " + "x" * 100)
    made.log("y" * 1_000_000)
    assert "cut here" in made.report.tail()


def test_secrets_are_masked_and_whoever_writes_is_called_once() -> None:
    report = Report(secrets=lambda: {"tok-12345"})
    report.log("the token is tok-12345", "info")
    report.progress(None, None, "with tok-12345 and postgres://shop:hunter2@db")
    told = report.take()
    assert told.lines[0][2] == f"the token is {MASK}"
    assert told.note == f"with {MASK} and postgres://{MASK}@db"
    calls: list[str] = []
    report = Report(changed=lambda: calls.append("changed"))
    for _ in range(2):
        report.log("a", "info")
        report.log("b", "info")
        report.take()
    assert calls == ["changed", "changed"]
