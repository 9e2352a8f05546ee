"""Tables that fit the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import columns_of

GAP: Final = "  "
ELLIPSIS: Final = "…"

Place = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. One with ``least`` may be cut to so many columns of the terminal."""

    title: str  # may have two lines
    right: bool = False
    least: int | None = None
    cut: Place = "end"  # the start of a dotted name tells least


@dataclass(frozen=True, slots=True)
class Row:
    """The texts of a row, and the colour of the whole of it."""

    cells: Sequence[str]
    colour: Callable[[str], str] = field(default=str)


def table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    width: int | None,
    heading: Callable[[str], str] = str,
) -> list[str]:
    """The lines of a table. None is longer than ``width``, which would break it."""
    texts = [[one_line(cell) for cell in row.cells] for row in rows]
    titles = _titles(columns)
    widths = [
        max(columns_of(line[i]) for line in (*titles, *texts))
        for i in range(len(columns))
    ]
    if width is not None:
        _shrink(columns, widths, width - len(GAP) * (len(columns) - 1))
    colours = [heading] * len(titles) + [row.colour for row in rows]
    return [
        colour(_line(columns, widths, cells, width))
        for colour, cells in zip(colours, titles + texts, strict=True)
    ]


def cut(text: str, width: int, place: Place = "end") -> str:
    """The text in so many columns of the terminal."""
    if columns_of(text) <= width:
        return text
    if width < 1:
        return ""
    room = width - 1
    tail = {"start": room, "middle": room // 2, "end": 0}[place]
    end = _first(text[::-1], tail)[::-1]
    return _first(text, room - tail) + ELLIPSIS + end


def _first(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += columns_of(character)
        if taken > width:
            return text[:index]
    return text


def _titles(columns: Sequence[Column]) -> list[list[str]]:
    split = [column.title.split("\n") for column in columns]
    height = max(map(len, split))
    filled = [[""] * (height - len(lines)) + lines for lines in split]
    return [list(line) for line in zip(*filled, strict=True)]


def _shrink(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Take from the widest of the columns that may be cut, until all fit."""
    while sum(widths) > room:
        able = [
            i
            for i, column in enumerate(columns)
            if column.least is not None and widths[i] > column.least
        ]
        if not able:
            return
        widest = max(able, key=lambda i: widths[i])
        widths[widest] -= 1


def _line(
    columns: Sequence[Column],
    widths: Sequence[int],
    cells: Sequence[str],
    room: int | None,
) -> str:
    parts = []
    for column, width, cell in zip(columns, widths, cells, strict=True):
        text = cut(cell, width, column.cut)
        space = " " * (width - columns_of(text))
        parts.append(space + text if column.right else text + space)
    line = GAP.join(parts).rstrip()
    return line if room is None else cut(line, room)
