"""Rows that figures are read from."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db import connection
from django.utils import timezone

from django_jobqueue.contrib.schedules import due_schedules
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    FailureRollup,
    Host,
    QueuedJob,
    Rollup,
    Worker,
)
from django_jobqueue.stats import attention, overview
from django_jobqueue.stats.attention import Concern
from django_jobqueue.stats.time_window import HOUR
from django_jobqueue.store.connection import DjangoDatabase

ADD = "tests.sample.add"
SAY = "tests.sample.say"


def histogram(*seconds: float) -> list[int]:
    made = [0] * BUCKETS
    for each in seconds:
        made[bucket_of(each)] += 1
    return made


def rollup(at: datetime, job_type: str = ADD, **columns: Any) -> None:
    """Insert a roll-up of the minute of this time."""
    values = {"queue": "default", "run_histogram": [], "wait_histogram": [], **columns}
    minute = at.replace(second=0, microsecond=0)
    Rollup.objects.create(bucket=minute, job_type=job_type, **values)


def queued(count: int = 1, **columns: Any) -> None:
    """Insert queued jobs. All but the first are copies of it, in one statement."""
    values = {"job_type_id": ADD, "queue": "default", **columns}
    first = QueuedJob.objects.create(**values)
    copied = ", ".join(
        one.column for one in QueuedJob._meta.concrete_fields if not one.primary_key
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO jobqueue_queuedjob (id, {copied}) "
            f"SELECT gen_random_uuid(), {copied} FROM jobqueue_queuedjob, "
            "generate_series(2, %s) WHERE id = %s",
            [count, first.pk],
        )


def host(name: str = "web-1:7", **columns: Any) -> Host:
    values = {
        "id": uuid4(),
        "host": name.partition(":")[0],
        "processes": 2,
        "threads": 4,
        "async_slots": 100,
        "lease_until": timezone.now() + timedelta(minutes=1),
        **columns,
    }
    return Host.objects.create(name=name, **values)


def worker(name: str = "web-1:1", **columns: Any) -> Worker:
    """Insert a living worker that knows two job types."""
    values = {
        "host": "web-1",
        "pid": 1,
        "threads": 4,
        "job_types": [ADD, SAY],
        "lease_until": timezone.now() + timedelta(minutes=1),
        **columns,
    }
    return Worker.objects.create(name=name, **values)


def schedule(
    name: str = "nightly", *, due: timedelta | None = None, **columns: Any
) -> Schedule:
    """Insert a schedule that fires each hour; planned, if it is said when it is due."""
    values = {"job_type_id": ADD, "rule": "every 3600", "time_zone": "UTC", **columns}
    made = Schedule.objects.create(name=name, **values)
    if due is not None:
        found = due_schedules.find(DjangoDatabase(), name)
        assert found is not None
        made.next_at, made.planned_for = timezone.now() + due, found.plan
        made.save()
    return made


def fired(ago: timedelta, status: str = "", name: str = "nightly", **job: Any) -> Any:
    """A firing so long ago, whose job has this status now; none: it was pruned."""
    id = uuid4()
    values = {"id": id, "job_type_id": ADD, **job}
    if status in ("queued", "running"):
        QueuedJob.objects.create(status=status, **values)
    elif status:
        ArchivedJob.objects.create(status=status, **values)
    moment = timezone.now() - ago
    Firing.objects.create(schedule=name, fires_at=moment, job_id=id, outcome="fired")
    return id


def crashed(
    count: int, job_type: str = ADD, *, state: str = "open", **ago_: float
) -> None:
    """So many crashes of a job type, so long ago."""
    group = FailureGroup.objects.create(
        fingerprint=uuid4(),
        coarse=uuid4(),
        error_class="jobqueue.WorkerLost",
        frame=job_type,
        state=state,
        first_seen=ago(days=9),
        last_seen=ago(days=9),
    )
    FailureRollup.objects.create(
        fingerprint=group.fingerprint,
        bucket=ago(**ago_).replace(minute=0, second=0, microsecond=0),
        job_type=job_type,
        retried=count - 1,
        failed=1,
    )
    for number in range(count):
        Failure.objects.create(
            job_id=uuid4(),
            job_type=job_type,
            number=1,
            end="crashed",
            worker=f"web-1:{number}",
            finished_at=ago(**ago_),
            error_class=group.error_class,
            fingerprint=group.fingerprint,
        )


def concerns() -> list[Concern]:
    overview.forget()
    return attention.concerns(overview.read(HOUR).now)


def ago(**length: float) -> datetime:
    return timezone.now() - timedelta(**length)
