"""The jobs that a list shows: its filters and its search as one selection.

A bulk operation takes the same selection, so that it changes what the list showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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
            text = gettext("No rows, because “%(title)s” is not clear: %(why)s")
            problems.append(text % {"title": spec.title, "why": visible(str(error))})
        except SelectionError:
            selection = selection.none()
    return selection, problems


def matching(queryset: QuerySet[Any], selection: Selection) -> QuerySet[Any]:
    """The rows of the queryset that are selected.

    The condition names the table, so this is for a queryset of jobs that is not itself
    part of another query.
    """
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
        if index := data_index_of(selection, term):
            wanted = data_indexes.texts_of(term.value)
            sql += f" AND {data_indexes.expression(index.path)} = ANY (%s::text[])"
            values.append(wanted)
    return queryset.filter(RawSQL(sql, values, output_field=BooleanField()))


def data_index_of(selection: Selection, term: Term) -> DataIndex | None:
    """The index that finds archived jobs of this type by this value, if the job type
    declared one, and it is made."""
    types = [one.value for one in selection.terms if one.field == "type"]
    if selection.table is not Table.ARCHIVED or term.field != "data" or not types:
        return None
    index = DataIndex(types[0], term.path)
    if not data_indexes.texts_of(term.value):
        return None
    return index if data_indexes.can_use(DjangoDatabase(), index) else None


def is_indexed(selection: Selection, term: Term) -> bool:
    """Whether an index finds the jobs that meet this term, however many there are."""
    if term.field == "state":
        return term.value in RUNNING
    if term.field == "data":
        return has_data_index(DjangoDatabase(), selection.table) or bool(
            data_index_of(selection, term)
        )
    return term.field in _INDEXED[selection.table]


def indexed_part(selection: Selection) -> Selection:
    """The same without the terms that no index serves."""
    terms = tuple(t for t in selection.terms if is_indexed(selection, t))
    return replace(selection, terms=terms)
