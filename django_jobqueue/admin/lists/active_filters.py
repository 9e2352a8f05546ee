"""The filters in force, above the list, each with a link that removes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.contrib.admin.views.main import SEARCH_VAR, ChangeList

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.search import SearchError
from django_jobqueue.search.tokens import tokens


class Chip(NamedTuple):
    """A condition in words, and the address of the list without it."""

    label: Any
    value: str
    without: str


class Tab(NamedTuple):
    """A state whose jobs are a list of their own."""

    label: Any
    link: str
    is_current: bool


def search_chips(changelist: ChangeList) -> Iterator[Chip]:
    """One for each term of the search."""
    try:
        typed = [token.text for token in tokens(changelist.query)]
    except SearchError:
        typed = [changelist.query]
    for number, text in enumerate(typed):
        others = " ".join([*typed[:number], *typed[number + 1 :]])
        link = changelist.get_query_string({SEARCH_VAR: others or None})
        yield Chip("", visible(text), link)
