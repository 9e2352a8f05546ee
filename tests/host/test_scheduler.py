"""Schedules fire once, on time, and as their options say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import cron, every
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.scheduler import Scheduler
from django_jobqueue.models import Firing, QueuedJob, Schedule
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import job_types
from django_jobqueue.store import schedules as schedule_rows
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _declared_here_alone() -> Iterator[None]:
    yield
    for name in schedules.names:
        schedules.remove(name)


@pytest.fixture
def scheduler(own: OwnConnection) -> Scheduler:
    return Scheduler(own, DeadlineWatch(own, WorkerConfig()))


def declare(own: OwnConnection) -> None:
    job_types.declare(own, registry)
    schedule_rows.declare(own, schedules, [each.name for each in registry])


def be_due(ago: timedelta = timedelta(0), **also: Any) -> datetime:
    """The next firing of all schedules was so long ago."""
    moment = (timezone.now() - ago).replace(microsecond=0)
    Schedule.objects.update(next_at=moment, **also)
    return moment


def test_a_schedule_is_planned_when_it_is_declared(
    own: OwnConnection, scheduler: Scheduler
) -> None:
    jobs.add.at(cron("30 2 * * *", tz="Europe/Berlin"))(a=1)
    declare(own)
    scheduler.tick()
    (row,) = Schedule.objects.all()
    assert (row.name, row.rule) == (jobs.add.name, "cron 30 2 * * *")
    assert row.next_at is not None
    assert row.next_at > timezone.now()
    assert not QueuedJob.objects.exists()


def test_it_fires_once(own: OwnConnection, scheduler: Scheduler) -> None:
    jobs.add.at(every(hours=1), name="hourly")(a=1, b=2)
    declare(own)
    scheduler.tick()
    moment = be_due()
    scheduler.tick()
    scheduler.tick()
    (job,) = QueuedJob.objects.all()
    assert job.data == {"a": 1, "b": 2}
    assert job.run_after == moment
    assert job.metadata == {"schedule": "hourly", "fires_at": moment.isoformat()}
    assert job.enqueued_by == "schedule hourly"
    (firing,) = Firing.objects.all()
    assert (firing.schedule, firing.fires_at) == ("hourly", moment)
    assert (firing.outcome, firing.job_id) == ("fired", job.id)
    assert Schedule.objects.get().next_at > moment
