"""The way from each page of the job queue to the others."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.admin.base import may

OVERVIEW: Final = "overview"

# What a tab leads to, its label, and the key that goes there after "g".
TABS: Final = (
    (OVERVIEW, _("Overview"), "o"),
    ("queuedjob", pgettext_lazy("tab", "Queued"), "q"),
    ("archivedjob", pgettext_lazy("tab", "Archive"), "a"),
    ("failuregroup", _("Failures"), "f"),
    ("jobtype", pgettext_lazy("tab", "Types"), "t"),
    ("queue", _("Queues"), "u"),
    ("schedule", pgettext_lazy("tab", "Schedules"), "s"),
    ("host", pgettext_lazy("tab", "Hosts"), "h"),
    ("worker", _("Workers"), "w"),
    ("lease", _("Leases"), "l"),
    ("alert", pgettext_lazy("tab", "Alerts"), "n"),
    ("keylimit", pgettext_lazy("tab", "Limits"), "m"),
    ("bulkoperation", pgettext_lazy("tab", "Operations"), "b"),
    ("auditentry", pgettext_lazy("tab", "Audit"), "d"),
    ("erasure", pgettext_lazy("tab", "Personal data"), "p"),
    ("token", pgettext_lazy("tab", "Tokens"), "k"),
)


class Tab(NamedTuple):
    """A link to a page."""

    label: Any
    url: str
    key: str
    is_current: bool


def tabs(request: HttpRequest, current: str) -> list[Tab]:
    """The tabs that this user may follow; ``current`` is a model in lower case, or
    "overview"."""
    return [
        Tab(label, url, key, name == current)
        for name, label, key in TABS
        if may(request, f"view_{name}") and (url := address_of(request, name))
    ]


def address_of(request: HttpRequest, name: str) -> str:
    """The address of a list, or of the overview; empty if its page is not on this
    site."""
    if name == OVERVIEW:
        return _reversed(request, "app_list", app_label="jobqueue")
    return _reversed(request, f"jobqueue_{name}_changelist")


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
