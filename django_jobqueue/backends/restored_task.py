"""The task that a job was enqueued from, out of its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from django_jobqueue.backends.compat import Task
from django_jobqueue.backends.job_task import JobTask
from django_jobqueue.backends.parameters import STAR, TaskParameters
from django_jobqueue.backends.results import JobTaskResult, result_of
from django_jobqueue.store.reading.record import Record


def restored(
    task: Task,
    data: Mapping[str, Any],
    *,
    queue: str,
    priority: int,
    max_attempts: int | None = None,
) -> Task:
    """The declared task with what a job says otherwise.

    It is not validated: queues and backends of the settings may have changed since.
    """
    star = data.get(STAR, {})
    changes = {"queue_name": queue, "priority": priority}
    changes |= {name: star[name] for name in ("backend", "run_after") if name in star}
    if "run_after" in changes:
        changes["run_after"] = datetime.fromisoformat(str(changes["run_after"]))
    if max_attempts is not None and isinstance(task, JobTask):
        changes["max_attempts"] = max_attempts
    return unchecked(task, **changes)


def recorded(record: Record, task: Task, parameters: TaskParameters) -> JobTaskResult:
    """The result that this record is of the declared task."""
    args, kwargs = parameters.call(record.job.data)
    of_job = restored(
        task,
        record.job.data,
        queue=record.job.queue,
        priority=record.job.priority,
        max_attempts=record.job.max_attempts,
    )
    return result_of(record, of_job, args, kwargs)


def unchecked(task: Task, **changes: Any) -> Task:
    """The same task with these changes, which nobody validates."""
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    made: Task = object.__new__(type(task))
    for known in fields(task):
        value = changes.get(known.name, getattr(task, known.name))
        object.__setattr__(made, known.name, value)
    return made
