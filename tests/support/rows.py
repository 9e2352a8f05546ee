"""Rows that a test starts from, and those that it leaves."""

from __future__ import annotations

from typing import Any

from django.db.models import Sum

from django_jobqueue.models import ArchivedJob, QueuedJob, Rollup


def archived(**filters: Any) -> list[ArchivedJob]:
    """Archived jobs, oldest first."""
    return list(ArchivedJob.objects.filter(**filters).order_by("finished_at", "id"))


def queued(**filters: Any) -> list[QueuedJob]:
    """Queued jobs, in order of their ids."""
    return list(QueuedJob.objects.filter(**filters).order_by("id"))


def counted(column: str, **filters: Any) -> int:
    """How many attempts were counted in this column, in whatever minute."""
    found = Rollup.objects.filter(**filters).aggregate(sum=Sum(column))
    return found["sum"] or 0
