"""The verbs of schedules."""

from __future__ import annotations

from typing import Final

from django_jobqueue.contrib.schedules import operations
from django_jobqueue.verbs.declarations import Argument, On, Verb

RUN: Final = Verb(
    "run",
    operations.run_now,
    on=On.SCHEDULE,
    right="jobqueue_schedules.run_schedule",
    summary="Enqueue its job now; its next firing stays as it is.",
    done="Enqueued the job {job.id} of type {job.job_type}.",
    audit="{name} schedule",
)
PAUSE: Final = Verb(
    "pause",
    operations.pause,
    on=On.SCHEDULE,
    right="jobqueue_schedules.pause_schedule",
    summary="It does not fire until it is resumed; nothing counts as missed.",
    done="Paused {name}.",
    not_done="{name} was already paused.",
    arguments=(Argument("reason", "Shown with the pause.", default=""),),
)
RESUME: Final = PAUSE._replace(
    name="resume",
    function=operations.resume,
    summary="It fires again, from its next moment on.",
    done="Resumed {name}.",
    not_done="{name} was not paused.",
    arguments=(),
)
DELETE: Final = RUN._replace(
    name="delete",
    function=operations.delete,
    right="jobqueue_schedules.delete_schedule",
    summary="Delete one that no code declares, with its history.",
    ask="Delete the schedule {name!r} and its history?",
    done="Deleted the schedule {name}.",
)
VERBS: Final = {one.name: one for one in (RUN, PAUSE, RESUME, DELETE)}
