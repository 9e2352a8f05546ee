"""Captures the language and the time zone at an enqueue, for the handler."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Final

from django.utils import timezone, translation

LANGUAGE: Final = "language"
TIME_ZONE: Final = "time_zone"


def captured(names: Iterable[str]) -> dict[str, str]:
    """The named ones of the active language and time zone.

    A deactivated language and a time zone without a name are left out.
    """
    active = {LANGUAGE: translation.get_language(), TIME_ZONE: _time_zone()}
    return {name: value for name in names if (value := active[name])}


def _time_zone() -> str | None:
    """The name of the active time zone, for ``zoneinfo``."""
    zone = timezone.get_current_timezone()
    return "UTC" if zone == UTC else getattr(zone, "key", None)
