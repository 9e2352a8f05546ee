"""The jobs that a list shows: its filters and its search as one selection.

A bulk operation takes the same selection, so that it changes what the list showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Protocol

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from django.db.models.query import QuerySet
from django.utils.translation import gettext

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.search import SearchError
from django_jobqueue.search.selection import (
    RUNNING,
    Selection,
    SelectionError,
    Table,
    Term,
)
from django_jobqueue.store import data_indexes
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.data_indexes import DataIndex
from django_jobqueue.store.reading.data_index import has_data_index
from django_jobqueue.store.selection import condition

_VALUE: Final = "\x00"  # stands for a value where no SQL has this character

# What an index serves, in any combination.
_INDEXED: Final = {
    Table.ARCHIVED: frozenset(
        {"id", "type", "status", "finished", "group", "replay-of", "operation"}
    ),
    Table.QUEUED: frozenset({"id", "worker", "group", "replay-of", "operation"}),
}


class Spec(Protocol):
    """A filter of a list of jobs."""

    title: Any

    def terms(self, table: Table) -> Sequence[Term]:
        """The terms of this filter. Raises SelectionError for an impossible value, and
        SearchError for text that is not understood."""
        ...


def selected(table: Table, specs: Iterable[Spec]) -> tuple[Selection, list[str]]:
    """The selection of these filters together, and their problems; it is empty if there
    is a problem."""
    selection, problems = Selection(table), []
    for spec in specs:
        try:
            selection = selection.also(*spec.terms(table))
        except SearchError as error:
            selection = selection.none()
            text = gettext("No rows, because “%(title)s” is invalid: %(why)s")
            problems.append(text % {"title": spec.title, "why": visible(str(error))})
        except SelectionError:
            selection = selection.none()
    return selection, problems


@dataclass
class KnownIndexes:
    """The indexes on data that are there; the catalogue is asked at most once."""

    _whole: dict[Table, bool] = field(default_factory=dict)

    def of(self, selection: Selection, term: Term) -> DataIndex | None:
        """The index that finds archived jobs of this type by this value, if the job
        type declared one, and it is made."""
        types = [one.value for one in selection.terms if one.field == "type"]
        if selection.table is not Table.ARCHIVED or term.field != "data" or not types:
            return None
        index = DataIndex(types[0], term.path)
        if not data_indexes.texts_of(term.value):
            return None
        return index if index.name in self._declared else None

    def has_whole(self, table: Table) -> bool:
        """True if one finds jobs of this table by whatever is in their data."""
        if table not in self._whole:
            self._whole[table] = has_data_index(DjangoDatabase(), table)
        return self._whole[table]

    @cached_property
    def _declared(self) -> frozenset[str]:
        return data_indexes.usable(DjangoDatabase())


def matching(
    queryset: QuerySet[Any], selection: Selection, indexes: KnownIndexes | None = None
) -> QuerySet[Any]:
    """The rows of the queryset that are selected.

    The condition names the table, so this is for a queryset of jobs that is not itself
    part of another query.
    """
    indexes = indexes or KnownIndexes()
    if selection.nothing:
        return queryset.none()
    if not selection.terms:
        return queryset
    values: list[Any] = []

    def placeholder(value: Any) -> str:
        values.append(value)
        return _VALUE

    sql = condition(selection, placeholder).replace("%", "%%").replace(_VALUE, "%s")
    for term in selection.terms:
        if index := indexes.of(selection, term):
            wanted = data_indexes.texts_of(term.value)
            sql += f" AND {data_indexes.expression(index.path)} = ANY (%s::text[])"
            values.append(wanted)
    return queryset.filter(RawSQL(sql, values, output_field=BooleanField()))


def indexed_part(
    selection: Selection, indexes: KnownIndexes | None = None
) -> Selection:
    """The same without the terms that no index serves."""
    indexes = indexes or KnownIndexes()
    terms = tuple(t for t in selection.terms if _is_indexed(selection, t, indexes))
    return replace(selection, terms=terms)


def _is_indexed(selection: Selection, term: Term, indexes: KnownIndexes) -> bool:
    """True if an index finds the jobs that meet this term, however many there are."""
    if term.field == "state":
        return term.value in RUNNING
    if term.field == "data":
        declared = indexes.of(selection, term)
        return declared is not None or indexes.has_whole(selection.table)
    return term.field in _INDEXED[selection.table]
