"""The base of actions on waiting jobs."""

from __future__ import annotations

from typing import Any

from django.utils.translation import ngettext

from django_jobqueue.admin.actions.action import ConfirmedAction, Rows
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.text import numbers


class WaitingAction(ConfirmedAction):
    """An action that leaves running jobs alone."""

    def applies_to(self, row: Any) -> bool:
        """Only to a job that is not running."""
        return bool(row.status == QueuedStatus.QUEUED)


def running_ones(rows: Rows) -> list[str]:
    """A sentence about what was selected and runs already."""
    count = sum(row.status == QueuedStatus.RUNNING for row in rows)
    if not count:
        return []
    text = ngettext(
        "%(count)s is already running and is left alone.",
        "%(count)s are already running and are left alone.",
        count,
    )
    return [text % {"count": numbers.number(count)}]


def archived_twin(row: QueuedJob) -> ArchivedJob:
    """The archived job, for the log entry of an action that archived it."""
    return ArchivedJob(id=row.pk, job_type_id=row.job_type_id)
