"""The saved views above a list, and the form that saves what it shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.contrib.admin.views.main import SEARCH_VAR
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse

from django_jobqueue.admin.base import may
from django_jobqueue.contrib.console.admin.visible_views import (
    ADD,
    SHARE,
    QueryError,
    VisibleView,
    query_of,
    visible_views,
)
from django_jobqueue.contrib.console.models import LONGEST_NAME

NAME: Final = "jobqueue_console_savedview"
SEARCH: Final = "search"  # the page that searches queue and archive
SEARCH_PARAMETERS: Final = (SEARCH_VAR,)
MOST_SHOWN: Final = 12  # above a list


class MenuEntry(NamedTuple):
    """A view, and whether it is what the list shows now."""

    view: VisibleView
    is_current: bool


class ViewMenu(NamedTuple):
    """The menu above a list."""

    list: str
    entries: Sequence[MenuEntry]
    others: int  # that are not shown
    url: str  # of the page of all views
    save_url: str
    query: str  # to be saved; empty if there is nothing to save
    may_share: bool
    longest: int = LONGEST_NAME


def views_above(context: Mapping[str, Any]) -> str:
    """The saved views of the list of a page, or of the search."""
    request, changelist = context["request"], context.get("cl")
    if context.get("is_popup"):
        return ""
    if changelist is None:
        menu = view_menu(request, SEARCH, SEARCH_PARAMETERS)
    else:
        name = str(changelist.opts.model_name)
        parameters = changelist.model_admin.parameters(request)
        menu = view_menu(request, name, parameters)
    shown = {"menu": menu, "csrf_token": context.get("csrf_token")}
    return render_to_string("admin/jobqueue_console/views.html", shown)


def view_menu(
    request: HttpRequest, list: str, parameters: Collection[str]
) -> ViewMenu | None:
    """The menu of this list; None if it cannot be narrowed, or on a site that has no
    such pages."""
    if not parameters:
        return None
    site = getattr(request, "current_app", None)
    try:
        url = reverse(f"admin:{NAME}_changelist", current_app=site)
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
        return query_of(request.GET, parameters)
    except QueryError:
        return ""
