"""Selects jobs: the conditions that a list, a search and a bulk operation share.

A selection is data. It is kept with the bulk operation that goes by it, shown in words
before anything happens, and means the same to the list that showed the jobs and to the
worker that changes them: ``django_jobqueue.store.selection`` has the only SQL of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID


class Table(StrEnum):
    """Where the jobs are."""

    QUEUED = "queued"
    ARCHIVED = "archived"


class ValueType(StrEnum):
    """The type of a field's values."""

    TEXT = "text"
    NUMBER = "number"
    MOMENT = "moment"
    MILLISECONDS = "milliseconds"
    ID = "id"
    IDS = "ids"  # a tuple
    TEXTS = "texts"  # a tuple
    FLAG = "flag"
    JSON = "json"


# Any of these; nobody types them in a search.
SEVERAL: Final = (ValueType.IDS, ValueType.TEXTS)
EQUAL: Final = ("=",)
ORDERED: Final = ("=", "<", "<=", ">", ">=")


class Field(NamedTuple):
    """A field that jobs can be selected by."""

    name: str
    value_type: ValueType
    tables: frozenset[Table]

    @property
    def operators(self) -> Sequence[str]:
        """The operators that compare its values."""
        ordered = (ValueType.NUMBER, ValueType.MOMENT, ValueType.MILLISECONDS)
        return ORDERED if self.value_type in ordered else EQUAL


BOTH: Final = frozenset(Table)
QUEUED: Final = frozenset({Table.QUEUED})
ARCHIVED: Final = frozenset({Table.ARCHIVED})

FIELDS: Final = {
    field.name: field
    for field in (
        Field("id", ValueType.IDS, BOTH),
        Field("type", ValueType.TEXT, BOTH),
        Field("queue", ValueType.TEXT, BOTH),
        Field("priority", ValueType.NUMBER, BOTH),
        Field("attempts", ValueType.NUMBER, BOTH),
        Field("worker", ValueType.TEXT, BOTH),  # its name, host:pid
        Field("error", ValueType.TEXT, BOTH),  # its class, with or without the module
        Field("by", ValueType.TEXT, BOTH),  # who enqueued it
        Field("replay-of", ValueType.ID, BOTH),
        Field("operation", ValueType.ID, BOTH),  # the bulk operation that made it
        Field("created", ValueType.MOMENT, BOTH),
        Field("due", ValueType.MOMENT, BOTH),
        Field("started", ValueType.MOMENT, BOTH),  # its last attempt
        Field("data", ValueType.JSON, BOTH),  # with a path
        Field("tag", ValueType.TEXT, BOTH),
        # In the name of its job type, or in what its last failure said.
        Field("text", ValueType.TEXT, BOTH),
        # The failure group that it was archived with; of a queued job, that of its
        # last failure. By the fingerprint.
        Field("group", ValueType.ID, BOTH),
        Field("groups", ValueType.IDS, BOTH),  # any of these
        Field("state", ValueType.TEXT, QUEUED),  # as a person sees it
        Field("status", ValueType.TEXT, ARCHIVED),
        Field("statuses", ValueType.TEXTS, BOTH),  # any, as the column has them
        # Any that one of these patterns fits: what a caller of the HTTP API may see.
        Field("types", ValueType.TEXTS, BOTH),
        Field("queues", ValueType.TEXTS, BOTH),
        Field("finished", ValueType.MOMENT, ARCHIVED),
        Field("ran", ValueType.MILLISECONDS, ARCHIVED),
        Field("waited", ValueType.MILLISECONDS, ARCHIVED),
        Field("release", ValueType.TEXT, ARCHIVED),
        Field("replayed", ValueType.FLAG, ARCHIVED),
    )
}

STATES: Final = ("ready", "later", "retrying", "running", "cancelling", "lapsed")
RUNNING: Final = frozenset({"running", "cancelling", "lapsed"})  # of these states


class SelectionError(ValueError):
    """Conditions that cannot be; the message says why."""


class Term(NamedTuple):
    """One condition: a field, how it is compared, and with what.

    ``path`` is where the value stands in the data: ``("customer", "id")``.
    """

    field: str
    value: Any
    operator: str = "="
    path: tuple[str, ...] = ()

    def check(self, table: Table) -> None:
        """Raises SelectionError for what means nothing to this table."""
        field = FIELDS.get(self.field)
        if field is None or table not in field.tables:
            raise SelectionError(f"{table} jobs are not selected by {self.field!r}.")
        if self.operator not in field.operators:
            raise SelectionError(
                f"{self.field!r} is not compared by {self.operator!r}."
            )
        if bool(self.path) != (field.value_type is ValueType.JSON):
            raise SelectionError(f"{self.field!r} needs a path only if it is data.")
        if not _fits(field.value_type, self.value):
            raise SelectionError(
                f"{self.field!r} is no {field.value_type}: {self.value!r}"
            )
        if self.field == "state" and self.value not in STATES:
            raise SelectionError(f"There is no state {self.value!r}.")


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs of one table that meet all of these terms; without any, all jobs.

    ``nothing`` is one that is empty whatever there is: a filter that could not be
    understood must never become a wider one.
    """

    table: Table
    terms: tuple[Term, ...] = ()
    nothing: bool = False

    def __post_init__(self) -> None:
        for term in self.terms:
            term.check(self.table)

    def also(self, *terms: Term) -> Selection:
        """This selection with these further terms."""
        return replace(self, terms=(*self.terms, *terms))

    def none(self) -> Selection:
        """One that is empty."""
        return replace(self, nothing=True)

    def values(self, field: str) -> list[Any]:
        """The values that this field has to equal."""
        return [t.value for t in self.terms if t.field == field and t.operator == "="]

    def to_json(self) -> dict[str, Any]:
        """As data that JSON can hold."""
        return {
            "table": self.table.value,
            "nothing": self.nothing,
            "terms": [
                [t.field, t.operator, _written(t.value), list(t.path)]
                for t in self.terms
            ],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Selection:
        """Read the data that ``to_json`` wrote. Raises SelectionError for anything
        else."""
        try:
            table = Table(value["table"])
            terms = tuple(_term(*parts) for parts in value["terms"])
            return cls(table, terms, bool(value["nothing"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SelectionError(f"This is no selection: {error}") from error


def _fits(value_type: ValueType, value: Any) -> bool:
    if value_type is ValueType.MOMENT:
        return isinstance(value, datetime) and value.utcoffset() is not None
    if value_type in (ValueType.NUMBER, ValueType.MILLISECONDS):
        return isinstance(value, int) and not isinstance(value, bool)
    if value_type is ValueType.IDS:
        return isinstance(value, tuple) and all(isinstance(id, UUID) for id in value)
    if value_type is ValueType.TEXTS:
        return isinstance(value, tuple) and all(isinstance(v, str) for v in value)
    if value_type is ValueType.TEXT:
        return isinstance(value, str) and "\x00" not in value
    types: dict[ValueType, type] = {ValueType.ID: UUID, ValueType.FLAG: bool}
    return value_type is ValueType.JSON or isinstance(value, types[value_type])


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return str(value) if isinstance(value, UUID) else value


def _term(name: str, operator: str, value: Any, path: Iterable[str]) -> Term:
    value_type = FIELDS[name].value_type
    if value_type is ValueType.MOMENT:
        value = datetime.fromisoformat(value)
    elif value_type is ValueType.ID:
        value = UUID(value)
    elif value_type is ValueType.IDS:
        value = tuple(map(UUID, value))
    elif value_type is ValueType.TEXTS:
        value = tuple(value)
    return Term(name, value, operator, tuple(path))
