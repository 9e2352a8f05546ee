"""The query string of a list, without what is of the moment."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict

from django_jobqueue.admin.lists.change_list import POSITIONS

# Pages, and what Django's own pages add.
PASSING: Final = frozenset(
    {*POSITIONS, "p", "e", "o", "all", "_facets", "_popup", "_to_field"}
)

_SIGNS: Final = {"gte": " ≥", "lte": " ≤"}


class QueryError(Exception):
    """A query that is none of this list; ``names`` are its unknown parameters."""

    def __init__(self, names: Collection[str] = ()) -> None:
        super().__init__(", ".join(names))
        self.names = sorted(names)


def query_of(typed: QueryDict, parameters: Collection[str]) -> str:
    """The same conditions in one spelling: without the page and what was left empty,
    ordered by name. Raises QueryError for what is no parameter of this list."""
    given = {
        name: [value for value in values if value]
        for name, values in typed.lists()
        if name not in PASSING
    }
    if unknown := {name for name, values in given.items() if name not in parameters}:
        raise QueryError(unknown)
    query = QueryDict(mutable=True)
    for name in sorted(given):
        query.setlist(name, given[name])
    if "\x00" in "".join(value for values in given.values() for value in values):
        raise QueryError
    return query.urlencode()


def parsed(text: str) -> QueryDict:
    """A query string. Raises QueryError."""
    try:
        return QueryDict(text)
    except SuspiciousOperation as error:  # more parameters than Django reads
        raise QueryError from error


def in_words(text: str) -> str:
    """The conditions of a saved query: "status: failed · finished at ≥ 2026-11-20"."""
    try:
        given = parsed(text)
    except QueryError:
        return ""
    return " · ".join(_condition(name, values) for name, values in given.lists())


def _condition(name: str, values: list[str]) -> str:
    field, _, end = name.partition("__range__")
    sign = _SIGNS.get(end[:3], ":")
    return f"{field.replace('_', ' ')}{sign} {', '.join(values)}"


def problem(text: str, parameters: Collection[str]) -> list[str] | None:
    """The parameters of a saved query that the list no longer has; None if it has all
    of them."""
    try:
        query_of(parsed(text), parameters)
    except QueryError as error:
        return error.names
    return None
