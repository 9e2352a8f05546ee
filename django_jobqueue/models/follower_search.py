"""Finds the followers of an archived job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet

from django_jobqueue.domain.ids import first_id
from django_jobqueue.models.archived_job import ArchivedJob
from django_jobqueue.models.queued_job import QueuedJob

# A follower's id is made in the transaction that archives, by the same clock: so it is
# looked for among the ids of these seconds, and no further index is needed.
BEFORE: Final = timedelta(seconds=1)
AFTER: Final = timedelta(seconds=15)


def among(model: Any, job: ArchivedJob) -> QuerySet[Any]:
    """The followers of this job that are rows of this model, oldest first."""
    rows: QuerySet[Any] = model.objects.using(job._state.db).filter(
        pk__gte=first_id(job.finished_at - BEFORE),
        pk__lt=first_id(job.finished_at + AFTER),
        follows=job.pk,
    )
    return rows.order_by("pk")


def followers_of(job: ArchivedJob) -> list[QueuedJob | ArchivedJob]:
    """The followers that this job enqueued and that are not pruned, oldest first. The
    queue is read first, since jobs move from there to the archive."""
    by_id = {
        row.pk: row for model in (QueuedJob, ArchivedJob) for row in among(model, job)
    }
    return [by_id[pk] for pk in sorted(by_id)]
