"""Durations and times as operators write and read them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.domain.policy import LONGEST
from django_jobqueue.text import timezones
from django_jobqueue.text.durations import duration_of

DURATIONS: Final = "30s, 10m, 2h, 7d, 1h30m, or a plain number of seconds"
TIMES: Final = f"a duration ({DURATIONS}) or an ISO time such as 2026-11-20T14:30"


def duration(flag: str, text: str | timedelta, accepted: str = DURATIONS) -> timedelta:
    """The duration that was given with this flag; ``accepted`` is what can be written
    there, for the error. Raises CommandError."""
    if isinstance(text, timedelta):
        return text
    length = duration_of(str(text))
    if length is None:
        raise CommandError(f"{flag}: {text!r} is no duration. Write {accepted}.")
    if length > LONGEST:
        raise CommandError(f"{flag}: {text!r} is more than a hundred years.")
    return length


def moment(
    flag: str, text: str | timedelta | datetime, *, now: datetime, ago: bool = False
) -> datetime:
    """The time that was given with this flag; a duration counts from ``now``, or back
    from it. Raises CommandError."""
    if isinstance(text, datetime):
        return text
    if isinstance(text, timedelta) or duration_of(text) is not None:
        length = duration(flag, text)
        return now - length if ago else now + length
    try:
        parsed = datetime.fromisoformat(text)
        return timezones.aware(parsed)
    except (ValueError, OverflowError):
        zone = timezone.get_current_timezone_name()
        raise CommandError(
            f"{flag}: {text!r} is no time. Write {TIMES}; without an offset it is "
            f"in the time zone {zone}."
        ) from None


def local(when: datetime) -> str:
    """A time in the current time zone, to the second."""
    return f"{timezones.local(when):%Y-%m-%d %H:%M:%S}"
