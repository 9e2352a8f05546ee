"""The database's clock, which decides which jobs are due or old."""

from __future__ import annotations

from datetime import datetime

from django_jobqueue.conf import conf
from django_jobqueue.models import JobType
from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.text import timezones


def database_now() -> datetime:
    """The time by that clock."""
    clock = JobType.objects.using(conf.database).annotate(now=ClockTimestamp())
    return clock.values_list("now", flat=True).first() or timezones.now()
