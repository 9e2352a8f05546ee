"""What attempts told, as rows made by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils import timezone

from django_jobqueue.models import Report
from tests.admin import scene as rows


def running(fence: int = 1, **columns: Any) -> UUID:
    """Insert a running job; returns its id."""
    started = {"status": "running", "started_at": timezone.now(), "attempts": 1}
    return rows.queued(**{**started, "fence": fence, **columns})


def told(job: UUID, fence: int = 1, **columns: Any) -> Report:
    """Insert what one attempt of a job told."""
    return Report.objects.create(
        job_id=job, fence=fence, **{"number": fence, **columns}
    )
