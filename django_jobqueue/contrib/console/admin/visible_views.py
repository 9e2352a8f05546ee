"""The views that a user sees: the user's own, and those that others share; and their
query strings, without what is of the moment."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import SuspiciousOperation
from django.db.models import Q
from django.http import HttpRequest, QueryDict

from django_jobqueue.admin.actions.row_marks import marks_of
from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may
from django_jobqueue.admin.lists.change_list import POSITIONS
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.search import SearchError
from django_jobqueue.search.hidden_values import hidden_keys
from django_jobqueue.search.tokens import tokens

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


ADD: Final = "jobqueue_console.add_savedview"
SHARE: Final = "jobqueue_console.share_savedview"
MOST: Final = 500  # of a list, that are read


class VisibleView(NamedTuple):
    """A view as pages show it."""

    id: int
    name: str  # as it is
    shown_name: str
    query: str
    owner: str
    is_shared: bool
    is_own: bool
    may_change: bool
    missing: str  # parameters that the list no longer has
    is_broken: bool
    conditions: str  # for people
    marks: str  # of what the forms replace


def name_of(request: HttpRequest) -> str:
    """The name of this user, as views know it."""
    user: Any = request.user
    return str(user.get_username())


def visible_views(
    request: HttpRequest, list: str, parameters: Collection[str]
) -> list[VisibleView]:
    """The views of this list, one's own first: one query."""
    me = name_of(request)
    rows = SavedView._default_manager.filter(Q(owner=me) | Q(is_shared=True), list=list)
    views = [
        _view(request, row, me, parameters)
        for row in rows.order_by("name", "id")[:MOST]
        if row.owner == me or not _is_hidden(request, row.query)
    ]
    return sorted(views, key=lambda view: (not view.is_own, view.shown_name.lower()))


def replaced(row: SavedView) -> tuple[str, str, bool]:
    """What its forms replace."""
    return row.name, row.query, row.is_shared


def may_change(request: HttpRequest, row: SavedView) -> bool:
    """True if it is one's own, or shared, and one may share."""
    if row.owner == name_of(request):
        return may(request, ADD)
    return row.is_shared and may(request, SHARE)


def _view(
    request: HttpRequest, row: SavedView, me: str, parameters: Collection[str]
) -> VisibleView:
    missing = problem(row.query, parameters)
    return VisibleView(
        id=row.pk,
        name=row.name,
        shown_name=display.visible(row.name),
        query=row.query,
        owner=display.visible(row.owner),
        is_shared=row.is_shared,
        is_own=row.owner == me,
        may_change=may_change(request, row),
        missing=display.names(missing or ()),
        is_broken=missing is not None,
        conditions=display.shown_text(in_words(row.query)),
        marks=marks_of([row], replaced),
    )


def _is_hidden(request: HttpRequest, query: str) -> bool:
    """True if it searches for values of data that this user may not see."""
    try:
        searches = parsed(query).getlist(SEARCH_VAR)
        terms = [term for text in searches for term in tokens(text)]
    except (SearchError, QueryError):
        return False
    paths = [term.path for term in terms if term.name == "data"]
    hidden = hidden_keys(
        {key for path in paths for key in path or ("",)},
        sees_data=may(request, VIEW_DATA),
        reveals=may(request, REVEAL_DATA),
        of=lambda: (
            str(key) for keys in catalogue.sensitive_keys(request) for key in keys
        ),
    )
    return bool(hidden)
