"""Tables and lines that a command prints, and how they read as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django_jobqueue.logs import one_line
from django_jobqueue.verbs.columns import Column

GAP = "  "


class Row(NamedTuple):
    """The texts of a row, and the colour of the whole of it."""

    cells: Sequence[str]
    colour: str = ""


class Section(NamedTuple):
    """A table with a title. Without a row ``empty`` stands for it, or nothing."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    empty: str = ""

    @property
    def heading(self) -> str:
        """The line above the table, or instead of it."""
        return self.title if self.rows else f"{self.title}: {self.empty}"


class Paragraph(NamedTuple):
    """A text beside the tables."""

    text: str
    colour: str = ""


Part = Section | Paragraph


def plain_table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """The lines of a table, its columns as wide as their longest text."""
    titles = [column.label for column in columns]
    texts = [titles, *([one_line(cell) for cell in row.cells] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*texts, strict=True)]
    return [
        GAP.join(
            f"{cell:{'>' if column.type.right else '<'}{width}}"
            for column, cell, width in zip(columns, cells, widths, strict=True)
        ).rstrip()
        for cells in texts
    ]


def plain(parts: Sequence[Part]) -> list[str]:
    """The lines of these parts, with an empty line before each table."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Section):
            lines += ["", part.heading]
            lines += plain_table(part.columns, part.rows) if part.rows else []
        else:
            lines.append(part.text)
    return lines
