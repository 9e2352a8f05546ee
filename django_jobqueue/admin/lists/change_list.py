"""Lists that stay fast on millions of rows.

Rows never depend on a count, pages are ranges of an index, and a filter that no index
serves looks through a window of the newest rows and says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ORDER_VAR, SEARCH_VAR, ChangeList
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst

from django_jobqueue.admin.lists.active_filters import Chip, Tab, search_chips
from django_jobqueue.admin.lists.counts import About, count
from django_jobqueue.admin.lists.filters import TabFilter
from django_jobqueue.admin.lists.positions import Key, Position
from django_jobqueue.admin.lists.ranges import TimeRangeFilter
from django_jobqueue.admin.lists.selected import KnownIndexes, indexed_part, matching
from django_jobqueue.admin.parts import display
from django_jobqueue.search.selection import Selection
from django_jobqueue.text import numbers

AFTER: Final = "after"  # the page of what is older than this position
BEFORE: Final = "before"  # the page of what is newer
SINCE: Final = "since"  # where the window begins that an unindexed filter looks through
POSITIONS: Final = (AFTER, BEFORE, SINCE)
WINDOW: Final = 100_000  # rows


class PlainChangeList(ChangeList):
    """A list in its own order, whatever the address asks for."""

    pages_by_key = False
    is_all_counted = True  # whether result_count is of all that match
    is_all_searched = True
    model_admin: Any
    result_count: int
    full_result_count: int | None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if not self.is_popup:  # which asks to select one
            self.title = str(capfirst(self.opts.verbose_name_plural))

    def get_ordering(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> list[Any]:  # an address can ask for a sort without an index
        """The order of the admin class."""
        return list(self.model_admin.ordering)

    def get_ordering_field_columns(self) -> dict[int, Any]:
        """No column can be clicked."""
        return {}

    _rows: Any
    _request: HttpRequest | None = None  # set once the rows can be annotated

    def get_results(self, request: HttpRequest) -> None:
        """Find the page."""
        self.params.pop(ORDER_VAR, None)
        self.find_page(request)
        self._request = request
        # Equal counts keep Django's search form from printing a second one.
        self.full_result_count = self.result_count

    @property
    def is_of_range(self) -> bool:
        """True if the list is of a range of time."""
        ranges = (one for one in self.filter_specs if isinstance(one, TimeRangeFilter))
        return any(one.is_used for one in ranges)

    @property
    def result_list(self) -> Any:
        """The rows of the page, with what their columns need: read when they are shown
        first, since a verb does not show them."""
        if self._request is not None:
            request, self._request = self._request, None
            self._rows = self.model_admin.annotate(request, list(self._rows))
            for row in self._rows:
                row.is_of_range = self.is_of_range
        return self._rows

    @result_list.setter
    def result_list(self, rows: Any) -> None:
        self._rows = rows

    def find_page(self, request: HttpRequest) -> None:
        """Set ``result_list`` and ``result_count``."""
        super().get_results(request)


class JobChangeList(PlainChangeList):
    """A list of jobs, paged by their key."""

    pages_by_key = True
    window = WINDOW

    # How far an unindexed filter looked; None when it looked at everything.
    searched_back_to: Position | None = None
    has_newer = False
    has_older = False

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> QuerySet[Any]:
        """The selected rows, without the page position."""
        for name in POSITIONS:
            self._leave_out(name)
        self.filter_specs, self.has_filters, unknown, _, self.has_active_filters = (
            self.get_filters(request)
        )
        if unknown:
            raise IncorrectLookupParameters(", ".join(unknown))
        self.selection: Selection = self.model_admin.selection(
            request, self.filter_specs, self.query
        )
        self.key: Key = self.model_admin.key_of(self.selection)
        self._after = self._take(request, AFTER)
        self._before = self._take(request, BEFORE)
        self._since = self._take(request, SINCE)
        return self._through_window(self.root_queryset.order_by(*self.key.order))

    def find_page(self, request: HttpRequest) -> None:
        """One row more than the page shows whether there is another page."""
        queryset = self.queryset.only(*self.model_admin.list_columns)
        rows = self._page(self.key.readable(queryset))
        self.result_list = rows
        if self.has_newer or self.has_older:
            self.result_count = count(self.queryset, known=len(rows))
        else:
            self.result_count = len(rows)
        self.is_all_counted = self.is_all_searched and not isinstance(
            self.result_count, About
        )
        self.paginator = self.model_admin.get_paginator(request, rows, len(rows) or 1)
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.multi_page = False

    def _page(self, queryset: QuerySet[Any]) -> list[Any]:
        if self._before is not None:
            rows = self._newer_page(queryset, self._before)
            if rows:
                return rows
        if self._after is not None:
            queryset = queryset.filter(self.key.after(self._after))
        rows = list(queryset[: self.list_per_page + 1])
        self.has_older = len(rows) > self.list_per_page
        self.has_newer = self._after is not None
        return rows[: self.list_per_page]

    def _newer_page(self, queryset: QuerySet[Any], before: Position) -> list[Any]:
        """The page before this position; nothing if it is not full, since then the
        first page shows more."""
        newer = queryset.filter(self.key.before(before))
        rows = list(newer.order_by(*self.key.backwards)[: self.list_per_page + 1])
        if len(rows) <= self.list_per_page:
            return []
        self.has_newer = self.has_older = True
        return rows[self.list_per_page - 1 :: -1]

    def _through_window(self, ordered: QuerySet[Any]) -> QuerySet[Any]:
        """The selected rows. Terms that no index serves look at a limited number of
        the rows that an index gives."""
        known = KnownIndexes()
        queryset = matching(ordered, self.selection, known)
        indexed = indexed_part(self.selection, known)
        self.searched_back_to = None
        if indexed == self.selection or self.selection.nothing:
            return queryset
        self.is_all_searched = self._since is None
        through = matching(ordered, indexed, known)
        if self._since is not None:
            queryset = queryset.filter(self.key.not_before(self._since))
            through = through.filter(self.key.not_before(self._since))
        beyond = through.values_list(*self.key.names)[self.window : self.window + 1]
        self.searched_back_to = next(iter(beyond), None)
        if self.searched_back_to is not None:
            self.is_all_searched = False
            queryset = queryset.filter(self.key.before(self.searched_back_to))
        return queryset

    def _leave_out(self, name: str) -> None:
        """This is no filter, and links do not repeat it."""
        self.params.pop(name, None)
        self.filter_params.pop(name, None)

    def _take(self, request: HttpRequest, name: str) -> Position | None:
        """A position from the address."""
        self._leave_out(name)
        text = request.GET.get(name)
        if not text:
            return None
        try:
            return self.key.read(text)
        except ValueError as error:
            raise IncorrectLookupParameters(error) from error

    # What the templates ask for.

    @property
    def count_text(self) -> str:
        """How many jobs match, in words that say how sure that is."""
        opts = self.opts
        number = self.result_count
        name = opts.verbose_name if number == 1 else opts.verbose_name_plural
        text = str(number) if isinstance(number, About) else numbers.number(number)
        return f"{text} {name}"

    @property
    def tabs(self) -> list[Tab]:
        """The states, each a list of its own."""
        return [
            tab
            for spec in self.filter_specs
            if isinstance(spec, TabFilter)
            for tab in spec.tabs(self)
        ]

    @property
    def active(self) -> list[Chip]:
        """The filters in force, each with a link that removes it."""
        specs: list[Any] = list(self.filter_specs)
        chips = [chip for spec in specs for chip in spec.chips(self)]
        return [*chips, *search_chips(self)]

    @property
    def window_text(self) -> str:
        """How many rows an unindexed filter looks through."""
        return numbers.number(self.window)

    @property
    def newest_link(self) -> str:
        """The first page."""
        return self._link({})

    @property
    def newer_link(self) -> str:
        """The page before."""
        if not self.result_list:
            return self.newest_link
        return self._link({BEFORE: self.key.write(self.key.of(self.result_list[0]))})

    @property
    def older_link(self) -> str:
        """The page after."""
        return self._link({AFTER: self.key.write(self.key.of(self.result_list[-1]))})

    @property
    def search_older_link(self) -> str:
        """The next window."""
        assert self.searched_back_to is not None
        return self.get_query_string({SINCE: self.key.write(self.searched_back_to)})

    @property
    def searched_back_to_time(self) -> str:
        """How far an unindexed filter looked, where the key has a time."""
        first = self.searched_back_to[0] if self.searched_back_to else None
        return display.exact(first) if isinstance(first, datetime) else ""

    def _link(self, position: dict[str, str]) -> str:
        if self._since is not None:
            position = {SINCE: self.key.write(self._since), **position}
        return self.get_query_string(position)


class KeyedChangeList(JobChangeList):
    """A list of other rows that is paged by their key, with the filters and the search
    of its admin class, which look at all of them."""

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> QuerySet[Any]:
        """The rows of the filters and the search, without the page position."""
        for name in (AFTER, BEFORE):
            self._leave_out(name)
        self.key = self.key_of(request)
        self._after = self._take(request, AFTER)
        self._before = self._take(request, BEFORE)
        self._since = None
        rows = PlainChangeList.get_queryset(self, request, exclude_parameters)
        return self.in_order(rows)

    def key_of(self, request: HttpRequest) -> Key:
        """The key that this list is ordered by."""
        key: Key = self.model_admin.key
        return key

    def in_order(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows by that key."""
        return queryset

    @property
    def active(self) -> list[Chip]:
        """The filters in force except the tab, each with a link that removes it."""
        specs: list[Any] = list(self.filter_specs)
        chips = [
            chip
            for spec in specs
            if getattr(spec, "parameter_name", "") != "state"
            for chip in spec.chips(self)
        ]
        if self.query:
            without = self.get_query_string({SEARCH_VAR: None})
            chips.append(Chip("", display.visible(self.query), without))
        return chips
