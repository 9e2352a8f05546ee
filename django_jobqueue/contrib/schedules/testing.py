"""``fire_schedules()`` and ``firings()``: schedules, in tests."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.contrib.schedules import due_schedules, schedule_rows
from django_jobqueue.contrib.schedules.scheduler import fire
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import ScheduleDeclaration, schedules
from django_jobqueue.enqueueing.options import Declared
from django_jobqueue.exceptions import UnknownSchedule
from django_jobqueue.operations import get_job
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rows import Job
from django_jobqueue.testing.clocks import aware
from django_jobqueue.testing.visible_jobs import name_of
from django_jobqueue.text.suggestions import near_names


@sync_only()
def fire_schedules(*only: str | Declared) -> list[Job]:
    """Fire the schedules that are due, or ``only`` these, as a host does; return the
    jobs that were enqueued. A handler stands for all its schedules.

    The first call plans the schedules from now on, so call it before time passes::

        with clock(datetime(2026, 3, 28, tzinfo=UTC)) as time:
            fire_schedules("nightly")
            time.move(days=1)
            (job,) = fire_schedules("nightly")

    Raises UnknownSchedule, and errors that a host would log, such as InvalidArguments
    for options that no job can have.
    """
    if conf.mode != "queue":
        return []
    db = DjangoDatabase()
    names = [one.name for each in only for one in _declared(each)]
    job_types.declare(db, registry)
    schedule_rows.declare(db)
    made: list[UUID] = []
    done = set(schedules.names) - set(names) if names else set()
    while due := due_schedules.due(db, schedules.names, done):
        made += fire(db, due).jobs
        # A plan is never due at once, and what was fired has gone on.
        done.update(one.name for one in due)
    return [get_job(id) for id in made]


def firings(
    schedule: str | Declared, since: datetime, until: datetime
) -> list[datetime]:
    """The moments at which a schedule of the code fires, in order and in UTC. A handler
    stands for all its schedules.

    :param since: the moments after this one.
    :param until: the last one that may be among them.

    Needs no database. Raises UnknownSchedule.
    """
    since, until = aware(since), aware(until)
    return sorted(
        moment
        for one in _declared(schedule)
        for moment in one.period.firings(one.rule, since, until)
    )


def _declared(schedule: str | Declared) -> list[ScheduleDeclaration]:
    """The schedule of this name, or those of this handler. Raises UnknownSchedule."""
    name = str(name_of(schedule))
    if not isinstance(schedule, str):
        return _schedules_of(name)
    one = schedules.get(name)
    if one is None:
        raise UnknownSchedule(name, near_names(name, schedules.names))
    return [one]


def _schedules_of(job_type: str) -> list[ScheduleDeclaration]:
    declared = [one for one in schedules if one.job_type == job_type]
    if not declared:
        raise UnknownSchedule(job_type, near_names(job_type, schedules.names))
    return declared
