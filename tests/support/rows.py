"""Rows that a test starts from, and those that it leaves."""

from __future__ import annotations

from typing import Any

from django_jobqueue.models import ArchivedJob, QueuedJob


def archived(**filters: Any) -> list[ArchivedJob]:
    """Archived jobs, oldest first."""
    return list(ArchivedJob.objects.filter(**filters).order_by("finished_at", "id"))


def queued(**filters: Any) -> list[QueuedJob]:
    """Queued jobs, in order of their ids."""
    return list(QueuedJob.objects.filter(**filters).order_by("id"))
