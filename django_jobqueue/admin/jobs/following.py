"""Jobs that follow on others: the one that this job brings about when it is over, and
the one that brought it about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import may_view
from django_jobqueue.admin.jobs import related
from django_jobqueue.admin.parts import display
from django_jobqueue.domain.ids import first_id
from django_jobqueue.models import ArchivedJob, QueuedJob

FOLLOWER: Final = "on_complete"  # who enqueued it, as the trigger writes it
# A follower's id is made in the transaction that archives, by the same clock: so it is
# looked for among the ids of these seconds, and no index of the data is needed.
BEFORE: Final = timedelta(seconds=1)
AFTER: Final = timedelta(seconds=15)

Fact = tuple[Any, Any]


def facts(request: HttpRequest, job: Any, data: Any) -> list[Fact]:
    """The job that this one follows, and the jobs that follow it; most have none."""
    found: list[Fact] = []
    if job.enqueued_by == FOLLOWER and (id := _earlier(data)):
        found.append((_("Follows on"), _archived(request, id)))
    if job.on_complete:
        found.append((_("When it is over"), _follower(request, job)))
    return found


def _earlier(data: Any) -> UUID | None:
    """The job that the data of a follower name."""
    try:
        return UUID(data["job"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _archived(request: HttpRequest, id: UUID) -> Any:
    is_there = (
        may_view(request, ArchivedJob) and ArchivedJob.objects.filter(pk=id).exists()
    )
    return related.archived_link(id, is_there=is_there)


def _follower(request: HttpRequest, job: Any) -> Any:
    """The job type, and the job, once there is one."""
    name = display.visible(job.on_complete)
    if not isinstance(job, ArchivedJob):
        return name
    for model in (QueuedJob, ArchivedJob, QueuedJob):
        row = among(model, job).values_list("pk", "status").first()
        if row is not None:
            id, status = row
            cell = related.replay_cell(request, id, status, str(model._meta.model_name))
            return display.lines([name, cell])
    return name


def among(model: Any, job: ArchivedJob) -> QuerySet[Any]:
    """The follower of this job, if it is among the rows of this model."""
    rows: QuerySet[Any] = model.objects.filter(
        pk__gte=first_id(job.finished_at - BEFORE),
        pk__lt=first_id(job.finished_at + AFTER),
        job_type_id=job.on_complete,
        enqueued_by=FOLLOWER,
        data__job=str(job.pk),
    )
    return rows.order_by("pk")
