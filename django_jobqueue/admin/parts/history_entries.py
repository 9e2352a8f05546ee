"""The log entries of an object, from the admin's history."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models

MOST: Final = 20


def entries(model: type[models.Model], key: Any, most: int = MOST) -> list[LogEntry]:
    """The newest entries about the object with this key, newest first."""
    return list(
        LogEntry.objects.filter(
            object_id=str(key), content_type=ContentType.objects.get_for_model(model)
        )
        .select_related("user")
        .order_by("-action_time", "-pk")[:most]
    )
