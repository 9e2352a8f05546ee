"""Where the pages lead that an alert is about."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import urlencode

from django_jobqueue.admin.base import may
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.tabs import OVERVIEW, address_of
from django_jobqueue.contrib.alerts.notification import place_of


def link_of(request: HttpRequest, condition: str, subject: str) -> str:
    """The address for this user; empty without the right, and if it is the overview
    itself."""
    place = place_of(condition, subject)
    if place.model == OVERVIEW or not may(request, f"view_{place.model}"):
        return ""
    if place.key:
        return display.url_of(place.model, place.key)
    address = address_of(request, place.model)
    return f"{address}?{urlencode(place.query)}" if address and place.query else address
