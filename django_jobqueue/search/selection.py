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
from typing import Any, Final
from uuid import UUID


class Table(StrEnum):
    """Where the jobs are."""

    QUEUED = "queued"
    ARCHIVED = "archived"


class Kind(StrEnum):
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


SEVERAL: Final = (Kind.IDS, Kind.TEXTS)  # any of these; nobody types them in a search
EQUAL: Final = ("=",)
ORDERED: Final = ("=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Field:
    """A field that jobs can be selected by."""

    name: str
    kind: Kind
    tables: frozenset[Table]

    @property
    def operators(self) -> Sequence[str]:
        """The operators that compare its values."""
        ordered = (Kind.NUMBER, Kind.MOMENT, Kind.MILLISECONDS)
        return ORDERED if self.kind in ordered else EQUAL


BOTH: Final = frozenset(Table)
QUEUED: Final = frozenset({Table.QUEUED})
ARCHIVED: Final = frozenset({Table.ARCHIVED})

FIELDS: Final = {
    field.name: field
    for field in (
        Field("id", Kind.IDS, BOTH),
        Field("type", Kind.TEXT, BOTH),
        Field("queue", Kind.TEXT, BOTH),
        Field("priority", Kind.NUMBER, BOTH),
        Field("attempts", Kind.NUMBER, BOTH),
        Field("worker", Kind.TEXT, BOTH),  # its name, host:pid
        Field("error", Kind.TEXT, BOTH),  # its class, with or without the module
        Field("by", Kind.TEXT, BOTH),  # who enqueued it
        Field("replay-of", Kind.ID, BOTH),
        Field("operation", Kind.ID, BOTH),  # the bulk operation that made it
        Field("created", Kind.MOMENT, BOTH),
        Field("due", Kind.MOMENT, BOTH),
        Field("data", Kind.JSON, BOTH),  # with a path
        Field("tag", Kind.TEXT, BOTH),
        # In the name of its job type, or in what its last failure said.
        Field("text", Kind.TEXT, BOTH),
        # The failure group that it was archived with; of a queued job, that of its
        # last failure. By the fingerprint.
        Field("group", Kind.ID, BOTH),
        Field("groups", Kind.IDS, BOTH),  # any of these
        Field("state", Kind.TEXT, QUEUED),  # as a person sees it
        Field("status", Kind.TEXT, ARCHIVED),
        Field("statuses", Kind.TEXTS, BOTH),  # any of these, as the column has them
        Field("finished", Kind.MOMENT, ARCHIVED),
        Field("ran", Kind.MILLISECONDS, ARCHIVED),
        Field("waited", Kind.MILLISECONDS, ARCHIVED),
        Field("release", Kind.TEXT, ARCHIVED),
        Field("replayed", Kind.FLAG, ARCHIVED),
    )
}

STATES: Final = ("ready", "later", "retrying", "running", "cancelling", "lapsed")
RUNNING: Final = frozenset({"running", "cancelling", "lapsed"})  # of these states


class SelectionError(ValueError):
    """Conditions that cannot be; the message says why."""


@dataclass(frozen=True, slots=True)
class Term:
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
        if bool(self.path) != (field.kind is Kind.JSON):
            raise SelectionError(f"{self.field!r} needs a path only if it is data.")
        if not _fits(field.kind, self.value):
            raise SelectionError(f"{self.field!r} is no {field.kind}: {self.value!r}")
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


def _fits(kind: Kind, value: Any) -> bool:
    if kind is Kind.MOMENT:
        return isinstance(value, datetime) and value.utcoffset() is not None
    if kind in (Kind.NUMBER, Kind.MILLISECONDS):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is Kind.IDS:
        return isinstance(value, tuple) and all(isinstance(id, UUID) for id in value)
    if kind is Kind.TEXTS:
        return isinstance(value, tuple) and all(isinstance(v, str) for v in value)
    if kind is Kind.TEXT:
        return isinstance(value, str) and "\x00" not in value
    types: dict[Kind, type] = {Kind.ID: UUID, Kind.FLAG: bool}
    return kind is Kind.JSON or isinstance(value, types[kind])


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return str(value) if isinstance(value, UUID) else value


def _term(name: str, operator: str, value: Any, path: Iterable[str]) -> Term:
    kind = FIELDS[name].kind
    if kind is Kind.MOMENT:
        value = datetime.fromisoformat(value)
    elif kind is Kind.ID:
        value = UUID(value)
    elif kind is Kind.IDS:
        value = tuple(map(UUID, value))
    elif kind is Kind.TEXTS:
        value = tuple(value)
    return Term(name, value, operator, tuple(path))
