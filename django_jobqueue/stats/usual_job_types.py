"""The job types that finish most jobs, which lists offer first where there are many."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history

MOST: Final = 20
FRESH: Final = 300.0  # seconds
LATELY: Final = timedelta(days=1)

_names: CachedValue[list[str]] = CachedValue()


def usual_job_types() -> list[str]:
    """Their names, the commonest first, as they were minutes ago."""

    def read() -> list[str]:
        start = database_now() - LATELY
        return history.commonest_types(DjangoDatabase(), start, MOST)

    return _names.get(conf.database, FRESH, read)


def forget() -> None:
    """Let the next reading be a new one."""
    _names.forget()
