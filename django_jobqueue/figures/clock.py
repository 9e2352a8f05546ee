"""The database's clock, which decides what is due and what is old."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.models import JobType
from django_jobqueue.models.functions import ClockTimestamp


def database_now() -> datetime:
    """The time by that clock."""
    clock = JobType.objects.using(conf.database).annotate(now=ClockTimestamp())
    now = clock.values_list("now", flat=True).first() or timezone.now()
    return aware(now)


def aware(when: Any) -> datetime:
    """The same time with its zone, which Django leaves out where USE_TZ is False."""
    found: datetime = when if timezone.is_aware(when) else timezone.make_aware(when)
    return found
