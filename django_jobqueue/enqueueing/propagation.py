"""What is active in the code that enqueues, so that it can be so in the handler."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Final

from django.utils import timezone, translation

LANGUAGE: Final = "language"
TIME_ZONE: Final = "time_zone"


def captured(names: Iterable[str]) -> dict[str, str]:
    """The language and the time zone that are active here, of those that are named.

    A language that is deactivated, and a time zone without a name, are left out.
    """
    found = {LANGUAGE: translation.get_language(), TIME_ZONE: _time_zone()}
    return {name: value for name in names if (value := found[name])}


def _time_zone() -> str | None:
    """The name by which ``zoneinfo`` finds it."""
    zone = timezone.get_current_timezone()
    return "UTC" if zone == UTC else getattr(zone, "key", None)
