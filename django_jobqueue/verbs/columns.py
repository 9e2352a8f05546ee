"""Declares the columns of a list once: for its table, its JSON, and the help of that.

Nothing here knows a surface: commands make tables of it, and so may pages and routes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from django_jobqueue.text import numbers, timezones

NONE: Final = "-"


class Type(NamedTuple):
    """How values of a column read in a table."""

    text: Callable[[Any], str]
    right: bool = False  # aligned
    none: str = NONE  # instead of None


def local(when: datetime) -> str:
    """A time in the current time zone, to the second."""
    return f"{timezones.local(when):%Y-%m-%d %H:%M:%S}"


TEXT: Final = Type(lambda value: str(value) or NONE)
NUMBER: Final = Type(numbers.number, right=True)
SPAN: Final = Type(numbers.span, right=True)  # seconds
MEGABYTES: Final = Type(  # bytes; none are known of a worker that begins
    lambda count: numbers.megabytes(count) if count else NONE, right=True
)
MOMENT: Final = Type(local)
NAMES: Final = Type(lambda names: ", ".join(names) or NONE)
EVERY: Final = Type(lambda names: ", ".join(names) or "every")  # none bounds nothing
QUEUES: Final = Type(", ".join, none="every")
RIGHT: Final = Type(str, right=True)


class Column(NamedTuple):
    """A column. Where a terminal is too narrow for all of them, long names are broken
    into lines (``breaks``) and other texts are cut (``cut``)."""

    key: str = ""  # in JSON; empty: it is not there
    label: str = ""  # above the table; empty: it is not there
    type: Type = TEXT
    value: Callable[[Any], Any] | str = ""  # or attributes: a.b; empty: ``key``
    note: str = ""  # beside the key in the help
    breaks: bool = False
    cut: bool = False

    def value_of(self, row: Any) -> Any:
        """The value that this column has in a row."""
        if callable(self.value):
            return self.value(row)
        if isinstance(row, dict):
            return row[self.value or self.key]
        return attrgetter(self.value or self.key)(row)

    def cell(self, row: Any) -> str:
        """The text that a table shows of it."""
        value = self.value_of(row)
        return self.type.none if value is None else self.type.text(value)


def only_json(keys: str, of: str = "") -> tuple[Column, ...]:
    """Columns of JSON alone: these attributes of the row, or of its ``of``."""
    path = f"{of}." if of else ""
    return tuple(Column(key, value=f"{path}{key}") for key in keys.split())


def always(value: Any) -> Callable[[Any], Any]:
    """The value of a column that is the same in every row."""
    return lambda row: value


class Listing(NamedTuple):
    """The columns of a list, and what stands there without a row."""

    columns: Sequence[Column]
    empty: str = ""
    color: Callable[[Any], str] = lambda row: ""

    @property
    def shown(self) -> list[Column]:
        """The columns of its table."""
        return [column for column in self.columns if column.label]

    @property
    def keys(self) -> str:
        """The keys of its JSON, with what they mean, for a help."""
        keyed = [column for column in self.columns if column.key]
        words = (f"{c.key} ({c.note})" if c.note else c.key for c in keyed)
        return f"{{{', '.join(words)}}}"

    def without(self, *labels: str) -> Listing:
        """The same list, with these columns in its JSON alone."""
        columns = (
            c._replace(label="") if c.label in labels else c for c in self.columns
        )
        return self._replace(columns=tuple(columns))

    def as_object(self, row: Any) -> dict[str, Any]:
        """A row as JSON has it; the keys are stable."""
        return {c.key: c.value_of(row) for c in self.columns if c.key}

    def cells(self, row: Any) -> list[str]:
        """A row as a table has it."""
        return [column.cell(row) for column in self.shown]


class MoreRows(NamedTuple):
    """A list that a room adds below a list of the command."""

    listing: Listing
    read: Callable[[], Sequence[Any]]
    json: str  # what its keys mean, for the help
