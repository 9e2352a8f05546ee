"""A job that has expired holds no key, though nobody has archived it yet."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection

from django_jobqueue import cancel, operations
from django_jobqueue.contrib.schedules import due_schedules, scheduler
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.store.rows import ago

pytestmark = pytest.mark.django_db(transaction=True)
Own = OwnConnection


def enqueue_one(own: Own) -> None:
    assert jobs.add_alone.using(on_duplicate="return").enqueue(1).is_new
    with pytest.raises(Exception, match="already queued"):
        jobs.add_alone.enqueue(1)


def enqueue_by_id(own: Own) -> None:
    assert jobs.add_alone.using(id=uuid4()).enqueue(1).is_new


def enqueue_many(own: Own) -> None:
    made = jobs.add_alone.enqueue_many([{"a": 1}, {"a": 2}])
    assert len(made.new) == 2


def edit(own: Own) -> None:
    other = jobs.add_alone.enqueue(2)
    operations.edit_data(other.id, {"a": 1})


def fire(own: Own) -> None:
    schedule_operations.create(
        "hourly", jobs.add_alone, rule="@hourly", data={"a": 1}, overlap="skip"
    )
    scheduler.fire(own, due_schedules.due(own, []))  # which plans it
    Schedule.objects.update(next_at=ago(0))
    scheduler.fire(own, due_schedules.due(own, []))
    assert Firing.objects.get().outcome == "fired"


def follow(own: Own) -> None:
    first = jobs.add.using(on_complete=jobs.report.using(unique_key="end")).enqueue(1)
    cancel(first.id)


def insert_in_sql(own: Own) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s)",
            [jobs.add_alone.name, '{"a": 1}'],
        )


@pytest.mark.parametrize(
    "call",
    [enqueue_one, enqueue_by_id, enqueue_many, edit, fire, follow, insert_in_sql],
)
def test_an_expired_job_holds_no_key(own: Own, call: Callable[[Own], None]) -> None:
    expired = jobs.add_alone.enqueue(1).id
    if call is follow:
        expired = jobs.report.using(unique_key="end").enqueue("", "").id
    other = jobs.add_alone.using(unique_key="mine").enqueue(5).id
    QueuedJob.objects.filter(id=expired).update(expires_at=ago(1))
    call(own)
    left = dict(QueuedJob.objects.values_list("id", "unique_key"))
    assert left[expired] is None
    assert left.pop(other) is not None
    assert any(left.values())
