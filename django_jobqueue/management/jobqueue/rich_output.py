"""Output of commands on a terminal with ``rich``, if it is installed; without it,
and in a file, they print the same as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import OutputWrapper

from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.text_tables import Part, Row, Section
from django_jobqueue.verbs.columns import Column

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
    from rich.text import Text
except ImportError:
    IS_INSTALLED = False
else:
    IS_INSTALLED = True


def console(out: Any, *, has_colour: bool) -> Console:
    """A console of rich on this output, which is a terminal."""
    file: Any = OutputWrapper(out._out, ending="")  # rich ends its lines itself
    colours: Any = "auto" if has_colour else None
    return Console(
        file=file, force_terminal=True, color_system=colours, highlight=False
    )


def table(columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    """A table that fits the terminal."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        drawn.add_column(
            Text(column.label),
            justify="right" if column.type.right else "left",
            no_wrap=not (column.breaks or column.cut),
        )
    for row in rows:
        cells = zip(columns, row.cells, strict=True)
        drawn.add_row(*(_cell(*cell) for cell in cells), style=row.colour)
    return drawn


def group(parts: Sequence[Part]) -> Group:
    """These parts, with an empty line before each table."""
    drawn: list[Any] = []
    for part in parts:
        if not isinstance(part, Section):
            drawn.append(Text(part.text, style=part.colour))
            continue
        drawn += [Text(), Text(part.heading, style="cyan" if part.rows else "")]
        if part.rows:
            drawn.append(table(part.columns, part.rows))
    return Group(*drawn)


def picture(on: Console) -> Live:
    """A picture that takes the whole terminal, until it is left."""
    return Live(console=on, screen=True, auto_refresh=False)


def bar(on: Console) -> Progress:
    """A bar that leaves nothing behind."""
    counts = TextColumn("{task.fields[counts]}")
    columns = (TextColumn("{task.description}"), BarColumn(), counts)
    return Progress(
        *columns, TimeRemainingColumn(), console=on, transient=True, auto_refresh=False
    )


def _cell(column: Column, text: str) -> Any:
    overflow: Any = "ellipsis" if column.cut else "fold"
    return Text(one_line(text), no_wrap=column.cut, overflow=overflow)
