"""``fire_schedules()`` and ``firings()``: schedules, in tests."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import ScheduleDeclaration, schedules
from django_jobqueue.enqueueing.options import Declared
from django_jobqueue.exceptions import UnknownSchedule
from django_jobqueue.host.maintenance.scheduler import fire
from django_jobqueue.operations import get_job
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rows import Job
from django_jobqueue.store.schedules import declare as declare_schedules
from django_jobqueue.store.schedules import fire as fire_store
from django_jobqueue.testing.clocks import aware
from django_jobqueue.testing.visible_jobs import name_of
from django_jobqueue.text.suggestions import near_names


@sync_only()
def fire_schedules(*only: str | Declared) -> list[Job]:
    """Fire the schedules that are due, or ``only`` these, as a host does; return the
    jobs that were enqueued. A handler stands for the schedule of its name.

    The first call plans the schedules from now on, so call it before time passes::

        with clock(datetime(2026, 3, 28, tzinfo=UTC)) as time:
            fire_schedules("nightly")
            time.move(days=1)
            (job,) = fire_schedules("nightly")

    Raises UnknownSchedule, and what a host logs, such as InvalidArguments for options
    that no job can have.
    """
    if conf.mode != "queue":
        return []
    db, names = DjangoDatabase(), [str(name_of(each)) for each in only]
    for name in names:
        _declared(name)
    job_types.declare(db, registry)
    declare_schedules.declare(db, schedules, [each.name for each in registry])
    made: list[UUID] = []
    done = set(schedules.names) - set(names) if names else set()
    while due := fire_store.due(db, schedules.names, done):
        made += fire(db, due)
        # A plan is never due at once, and what was fired has gone on.
        done.update(one.name for one in due)
    return [get_job(id) for id in made]


def firings(
    schedule: str | Declared, since: datetime, until: datetime
) -> list[datetime]:
    """The moments at which a schedule of the code fires, after one and up to another,
    in UTC. A handler stands for the schedule that is named as its job type.

    Needs no database. Raises UnknownSchedule.
    """
    one = _declared(str(name_of(schedule)))
    moments, moment = [], one.period.next_after(one.rule, aware(since))
    while moment is not None and moment <= aware(until):
        moments.append(moment)
        moment = one.period.next_after(one.rule, moment)
    return moments


def _declared(name: str) -> ScheduleDeclaration:
    one = schedules.get(name)
    if one is None:
        raise UnknownSchedule(name, near_names(name, schedules.names))
    return one
