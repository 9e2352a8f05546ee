"""The way from each page of the job queue to the others."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from django_jobqueue.admin.base import may
from django_jobqueue.rooms import rooms

OVERVIEW: Final = "overview"


class TabLink(NamedTuple):
    """A link to a page."""

    label: Any
    url: str
    key: str
    is_current: bool


def tabs(request: HttpRequest, current: str) -> list[TabLink]:
    """The tabs that this user may follow; ``current`` is a model in lower case, or
    "overview"."""
    return [
        TabLink(tab.label, url, tab.key, tab.name == current)
        for room in rooms()
        for tab in room.tabs
        if may(request, f"{room.label}.view_{tab.name}")
        and (url := address_of(request, tab.name, room.label))
    ]


def address_of(request: HttpRequest, name: str, label: str = "jobqueue") -> str:
    """The address of a list, or of the overview; empty if its page is not on this
    site."""
    if name == OVERVIEW:
        return _reversed(request, "app_list", app_label="jobqueue")
    return _reversed(request, f"{label}_{name}_changelist")


def jump_address(request: HttpRequest) -> str:
    """Where the box leads that takes an id or a name; empty if not on this site."""
    return _reversed(request, "jobqueue_jump")


def _reversed(request: HttpRequest, name: str, **arguments: str) -> str:
    site = getattr(request, "current_app", None)
    try:
        url: str = reverse(f"admin:{name}", kwargs=arguments, current_app=site)
    except NoReverseMatch:
        return ""
    return url
