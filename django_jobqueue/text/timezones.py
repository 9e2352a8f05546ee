"""Times that know their zone, whether Django's do (``USE_TZ``) or not.

Models and the store read all times in UTC, and Python refuses to compare those with
times that have no zone. So nothing here calls Django's ``timezone.now()``, which has
none where ``USE_TZ`` is false.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone


def now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def aware(when: datetime) -> datetime:
    """The same time; one without a zone is in the current time zone."""
    return when if timezone.is_aware(when) else timezone.make_aware(when)


def local(when: datetime) -> datetime:
    """The same time in the current time zone."""
    return timezone.localtime(aware(when))


def exact(at: datetime) -> str:
    """Date, time and zone. Django's own format leaves out the zone in the hour that
    comes twice, where it matters most."""
    shown = local(at)
    return f"{shown:%Y-%m-%d %H:%M:%S} {shown:%Z}"
