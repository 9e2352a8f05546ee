"""The pauses of job types and queues that are in force."""

from __future__ import annotations

from django.db.models import Q

from django_jobqueue.models import JobType, Queue
from django_jobqueue.text import timezones


def is_paused(row: JobType | Queue | None) -> bool:
    """True if a pause of this job type or queue is in force."""
    if row is None or not row.paused:
        return False
    return row.resume_at is None or row.resume_at > timezones.now()


def in_force() -> Q:
    """The same for many, as a condition."""
    lasts = Q(resume_at=None) | Q(resume_at__gt=timezones.now())
    return Q(paused=True) & lasts
