"""Captures language, time zone and tenant at an enqueue, for the handler."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Final

from django.conf import settings
from django.db import connections
from django.utils import timezone, translation

LANGUAGE: Final = "language"
TIME_ZONE: Final = "time_zone"
TENANT: Final = "tenant"


def captured(names: Iterable[str]) -> dict[str, str]:
    """The named ones of the active language, time zone and tenant.

    A deactivated language, a time zone without a name and the shared schema are left
    out.
    """
    active = {
        LANGUAGE: translation.get_language(),
        TIME_ZONE: _time_zone(),
        TENANT: _tenant(),
    }
    return {name: value for name in names if (value := active[name])}


def _time_zone() -> str | None:
    """The name of the active time zone, for ``zoneinfo``."""
    zone = timezone.get_current_timezone()
    return "UTC" if zone == UTC else getattr(zone, "key", None)


def _tenant() -> str | None:
    """The schema that django-tenants has set, if it is that of a tenant."""
    alias = getattr(settings, "TENANT_DB_ALIAS", "default")
    schema = getattr(connections[alias], "schema_name", None)
    is_shared = schema == getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    return None if is_shared else schema
