"""Reads times as UTC, on connections of Django whose zone is a local one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from psycopg.types.datetime import TimestamptzLoader


class UTCLoader(TimestamptzLoader):
    """Times in UTC, whatever the zone of the session."""

    def load(self, data: Any) -> datetime:
        """The time that PostgreSQL wrote like this."""
        return super().load(data).astimezone(UTC)
