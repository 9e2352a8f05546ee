"""The database's clock, which decides which jobs are due or old."""

from __future__ import annotations

from datetime import datetime

from django_jobqueue.store import job_types
from django_jobqueue.store.connection import Database, DjangoDatabase


def database_now(db: Database | None = None) -> datetime:
    """The time by that clock."""
    return job_types.clock_time(db or DjangoDatabase())
