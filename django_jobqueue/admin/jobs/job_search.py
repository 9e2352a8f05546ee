"""The search of a list of jobs: what a user may search, and names in short."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest

from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.search import IdSearch, parse
from django_jobqueue.search.hidden_values import check_values
from django_jobqueue.search.selection import Selection
from django_jobqueue.search.type_names import with_whole_type
from django_jobqueue.text import timezones


def understood(
    request: HttpRequest, selection: Selection, query: str
) -> tuple[Selection, Sequence[IdSearch]]:
    """The selection with what was typed, and the ids that were. Raises SearchError."""
    search = parse(query, selection.table, timezones.now())
    names = catalogue.type_names(request)
    terms = [with_whole_type(term, names) for term in search.terms]
    selection = selection.also(*terms)
    check_data(request, selection)
    return selection, search.ids


def check_data(request: HttpRequest, selection: Selection) -> None:
    """Raises SearchError for a search in what this user may not see."""
    check_values(
        selection,
        sees_data=may(request, VIEW_DATA),
        reveals=may(request, REVEAL_DATA),
        sensitive=lambda: catalogue.sensitive_of(request, selection),
    )
