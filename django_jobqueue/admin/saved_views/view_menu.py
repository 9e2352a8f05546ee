"""The saved views above a list, and the form that saves what it shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from django_jobqueue.admin.base import may
from django_jobqueue.admin.saved_views import list_query
from django_jobqueue.admin.saved_views.visible_views import (
    ADD,
    SHARE,
    VisibleView,
    visible_views,
)
from django_jobqueue.models.saved_view import LONGEST_NAME

NAME: Final = "jobqueue_views"
MOST_SHOWN: Final = 12  # above a list


class MenuEntry(NamedTuple):
    """A view, and whether it is what the list shows now."""

    view: VisibleView
    is_current: bool


class ViewMenu(NamedTuple):
    """What stands above a list."""

    list: str
    entries: Sequence[MenuEntry]
    others: int  # that are not shown
    url: str  # of the page of all views
    save_url: str
    query: str  # to be saved; empty if there is nothing to save
    may_share: bool
    longest: int = LONGEST_NAME


def view_menu(
    request: HttpRequest, list: str, parameters: Collection[str]
) -> ViewMenu | None:
    """The menu of this list; None if it cannot be narrowed, or on a site that has no
    such pages."""
    if not parameters:
        return None
    site = getattr(request, "current_app", None)
    try:
        url = reverse(f"admin:{NAME}", current_app=site)
        save_url = reverse(f"admin:{NAME}_save", current_app=site)
    except NoReverseMatch:
        return None
    here = _query_here(request, parameters)
    views = visible_views(request, list, parameters)
    entries = [MenuEntry(view, bool(here) and view.query == here) for view in views]
    is_saved = any(entry.is_current for entry in entries)
    shown = [
        entry
        for number, entry in enumerate(entries)
        if number < MOST_SHOWN or entry.is_current
    ]
    return ViewMenu(
        list=list,
        entries=shown,
        others=len(entries) - len(shown),
        url=f"{url}#jq-views-{list}",
        save_url=save_url,
        query="" if is_saved or not may(request, ADD) else here,
        may_share=may(request, SHARE),
    )


def _query_here(request: HttpRequest, parameters: Collection[str]) -> str:
    try:
        return list_query.query_of(request.GET, parameters)
    except list_query.QueryError:
        return ""
