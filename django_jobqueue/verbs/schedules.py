"""The verbs of schedules."""

from __future__ import annotations

from typing import Final

from django_jobqueue.operations import schedules
from django_jobqueue.verbs.declarations import Argument, On, Verb

RUN: Final = Verb(
    "run",
    schedules.run_now,
    on=On.SCHEDULE,
    right="run_schedule",
    summary="Enqueue its job now; its next firing stays as it is.",
    done="Enqueued the job {job.id} of type {job.job_type}.",
    audit="{name} schedule",
)
PAUSE: Final = Verb(
    "pause",
    schedules.pause,
    on=On.SCHEDULE,
    right="pause_schedule",
    summary="It does not fire until it is resumed; nothing counts as missed.",
    done="Paused {name}.",
    not_done="{name} was already paused.",
    arguments=(Argument("reason", "Shown with the pause.", default=""),),
)
RESUME: Final = PAUSE._replace(
    name="resume",
    function=schedules.resume,
    summary="It fires again, from its next moment on.",
    done="Resumed {name}.",
    not_done="{name} was not paused.",
    arguments=(),
)
DELETE: Final = RUN._replace(
    name="delete",
    function=schedules.delete,
    right="delete_schedule",
    summary="Delete one that no code declares, with its history.",
    ask="Delete the schedule {name!r} and its history?",
    done="Deleted the schedule {name}.",
)
VERBS: Final = {one.name: one for one in (RUN, PAUSE, RESUME, DELETE)}
