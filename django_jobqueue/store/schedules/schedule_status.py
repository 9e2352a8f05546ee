"""Reads the status of schedules: their plan, their newest firing, their last job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.schedules.due_schedules import PLAN

MOST_FIRINGS: Final = (
    5  # firings with a job, among which the last finished job is found
)

# Both statuses are looked up by the primary key of a job, one by one: a join could read
# the whole archive.
_QUEUED: Final = "(SELECT job.status FROM jobqueue_queuedjob AS job WHERE job.id = {})"
_ARCHIVED: Final = (
    "(SELECT job.status FROM jobqueue_archivedjob AS job WHERE job.id = {})"
)

# A job that was replayed is no longer the last word.
SCHEDULE_STATUSES: Final = f"""
SELECT schedule.name, schedule.planned_for = {PLAN}, schedule.next_at,
       newest.fires_at, newest.outcome, newest.number, newest.by, newest.job_id,
       coalesce({_QUEUED.format("newest.job_id")}, {_ARCHIVED.format("newest.job_id")}),
       finished.job_id, finished.status,
       EXISTS (SELECT FROM jobqueue_queuedjob AS again
                WHERE again.replay_of = finished.job_id)
       OR EXISTS (SELECT FROM jobqueue_archivedjob AS again
                   WHERE again.replay_of = finished.job_id)
  FROM jobqueue_schedule AS schedule
  LEFT JOIN LATERAL (
    SELECT firing.* FROM jobqueue_firing AS firing
     WHERE firing.schedule = schedule.name
     ORDER BY firing.fires_at DESC LIMIT 1) AS newest ON true
  LEFT JOIN LATERAL (
    SELECT made.job_id, made.status
      FROM (SELECT firing.fires_at, firing.job_id,
                   {_ARCHIVED.format("firing.job_id")} AS status
              FROM jobqueue_firing AS firing
             WHERE firing.schedule = schedule.name AND firing.job_id IS NOT NULL
             ORDER BY firing.fires_at DESC LIMIT {MOST_FIRINGS}) AS made
     WHERE made.status IS NOT NULL
     ORDER BY made.fires_at DESC LIMIT 1) AS finished ON true
 WHERE schedule.name = ANY (%(names)s::text[])
"""


class NewestFiring(NamedTuple):
    """The newest firing of a schedule."""

    fires_at: datetime
    outcome: str
    number: int  # of firings that it stands for, if they were missed
    by: str
    job_id: UUID | None
    status: str | None  # of the job; None if it has none, or it was pruned


class FinishedJob(NamedTuple):
    """The job of a schedule that finished last."""

    id: UUID
    status: str
    is_replayed: bool


class ScheduleStatus(NamedTuple):
    """The plan, the newest firing and the last finished job of a schedule."""

    is_planned: bool  # by the rule that it has now
    next_at: datetime | None
    newest: NewestFiring | None = None
    finished: FinishedJob | None = None


def schedule_statuses(db: Database, names: Sequence[str]) -> dict[str, ScheduleStatus]:
    """The status of these schedules, by their names."""
    if not names:
        return {}
    by_name = {}
    for row in db.fetch(SCHEDULE_STATUSES, {"names": list(names)}):
        name, is_planned, next_at, *newest = row[:9]
        id, status, is_replayed = row[9:]
        by_name[name] = ScheduleStatus(
            is_planned,
            next_at,
            NewestFiring(*newest) if newest[0] else None,
            FinishedJob(id, status, is_replayed) if id else None,
        )
    return by_name
