"""Database functions that stand in column defaults."""

from __future__ import annotations

from django.db.models import Func, UUIDField

from django_jobqueue.models.fields import UTCDateTimeField


class ClockTimestamp(Func):
    """The database's clock at this moment, not at the start of the transaction."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = UTCDateTimeField()


class NewId(Func):
    """A UUIDv7: PostgreSQL's own from 18 on, else made by our first migration."""

    function = "jobqueue_uuidv7"
    template = "%(function)s()"
    output_field = UUIDField()
