"""Celery's crontab as our cron rule."""

from __future__ import annotations

import re
from typing import Final

from django_jobqueue.contrib.importing.foreign_schedule import NotImportable
from django_jobqueue.domain.schedule_rules import Cron, cron

# The fields of a cron expression, and the values that each can have in Celery.
FIELDS: Final = {
    "minute": (0, 59),
    "hour": (0, 23),
    "day_of_month": (1, 31),
    "month_of_year": (1, 12),
    "day_of_week": (0, 6),
}
DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS: Final = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV"),
    "DEC",
)


def cron_of(fields: dict[str, str], time_zone: str) -> Cron:
    """The rule of these fields of Celery's ``crontab``. Raises NotImportable."""
    parts = [_field(name, fields.get(name) or "*") for name in FIELDS]
    if parts[2] != "*" and parts[4] != "*":
        raise NotImportable(
            "It fires where the day of month and the day of week both match; in a rule "
            "here, either does. Let the handler check one of them."
        )
    try:
        return cron(" ".join(parts), tz=time_zone)
    except ValueError as error:
        raise NotImportable(f"Its rule cannot be read: {error}.") from None


def _field(name: str, text: str) -> str:
    """One field; Celery's ranges may wrap around, as ``22-2`` or ``fri-mon``."""
    text = re.sub(r"\s+", "", text.strip("[]() ")).upper()
    text = re.sub(r"[A-Z]{3,}", lambda match: match[0][:3], text)
    low, high = FIELDS[name]
    written = ",".join(_unwrapped(part, name, low, high) for part in text.split(","))
    is_all = all(part in ("*", "*/1") for part in written.split(","))
    return "*" if is_all else written


def _unwrapped(part: str, name: str, low: int, high: int) -> str:
    match = re.fullmatch(r"(\w+)-(\w+)(?:/(\d+))?", part)
    if match is None:
        return part
    first, last = (_number(text, name) for text in match.groups()[:2])
    if first is None or last is None or first <= last:
        return part
    values = [*range(first, high + 1), *range(low, last + 1)]
    return ",".join(map(str, values[:: max(int(match[3] or 1), 1)]))


def _number(text: str, name: str) -> int | None:
    if text in DAYS and name == "day_of_week":
        return DAYS.index(text)
    if text in MONTHS and name == "month_of_year":
        return MONTHS.index(text) + 1
    return int(text) if text.isdecimal() else None
