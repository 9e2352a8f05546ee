"""Enqueue under the caller's id, as often as you like: one job."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import pytest
from django.db import transaction

from django_jobqueue.domain.ids import new_id
from django_jobqueue.exceptions import AlreadyArchived
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import insert, insert_once
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job
from tests.store.meanwhile import Background, open_transaction, together, until_waiting
from tests.store.rows import ADD, archive, claimed, forget_job_types, make

pytestmark = pytest.mark.django_db(transaction=True)

MOVE = """
WITH gone AS (
  DELETE FROM jobqueue_queuedjob WHERE id = %(id)s
  RETURNING id, job_type, data
)
INSERT INTO jobqueue_archivedjob (id, job_type, status, data)
SELECT id, job_type, 'succeeded', data FROM gone
"""


def put_once(id: UUID, a: int = 1) -> Job | None:
    """Enqueue under this id."""
    data = {"a": a}
    inserted = insert_once.insert_once(
        DjangoDatabase(), NewJob(job_type=ADD), id, data, f'{{"a": {a}}}'
    )
    return inserted and inserted.job


@pytest.fixture(autouse=True, params=["a type that is known", "another one"])
def _knowledge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the job type was looked up a moment ago: then the statement is another
    one."""
    forget_job_types()
    is_known = request.param == "a type that is known"
    monkeypatch.setattr(insert, "KNOWN_FOR", 600.0 if is_known else 0.0)
    put_once(new_id())
    QueuedJob.objects.all().delete()
    known = insert._known.values()  # private: nobody else shows them
    assert any(one.holds for one in known) == is_known


def test_a_new_id_makes_a_job_that_is_found_while_it_waits_or_runs(
    own: OwnConnection, holder: int
) -> None:
    id = new_id()
    first, second = put_once(id, a=1), put_once(id, a=2)
    assert first is not None
    assert (first.id, first.data, first.status) == (id, {"a": 1}, "queued")
    assert second is not None
    assert (second.id, second.data) == (id, {"a": 1})
    assert second.created_at == first.created_at
    assert [job.data for job in QueuedJob.objects.all()] == [{"a": 1}]
    claimed(own, holder)
    job = put_once(id)
    assert job is not None
    assert (job.status, job.attempts, job.worker) == ("running", 1, "host:1")


def test_an_archived_id_inserts_nothing_and_leaves_the_transaction_usable() -> None:
    with transaction.atomic():
        for status in ("succeeded", "failed", "expired", "cancelled"):
            id = archive(status=status)
            with pytest.raises(AlreadyArchived) as caught:
                put_once(id)
            assert (caught.value.id, caught.value.status) == (id, status)
            assert str(caught.value) == (
                f"Job {id} has already ended ({status}), so its id cannot be enqueued "
                "again. Replay it, or use a new id."
            )
        after = put_once(new_id())
    assert after is not None
    assert [job.id for job in QueuedJob.objects.all()] == [after.id]


def test_many_callers_with_one_id_make_one_job() -> None:
    id = new_id()
    numbers = range(24)
    jobs = together([partial(put_once, id, a=number) for number in numbers])
    (held,) = QueuedJob.objects.all()
    assert {job.id for job in jobs} == {id}
    assert {str(job.data) for job in jobs} == {str(held.data)}


def test_an_id_that_is_being_archived_is_waited_for_and_refused(
    other: OwnConnection, background: Background
) -> None:
    id = make()
    with open_transaction(other) as moving:
        moving.run(MOVE, {"id": id})
        future = background(partial(put_once, id))
        until_waiting()
    with pytest.raises(AlreadyArchived):
        future.result(30)
    assert not QueuedJob.objects.exists()


def test_an_id_whose_move_to_the_archive_is_undone_is_still_queued(
    other: OwnConnection, background: Background
) -> None:
    id = make()
    with open_transaction(other, undone=True) as moving:
        moving.run(MOVE, {"id": id})
        future = background(partial(put_once, id))
        until_waiting()
    job = future.result(30)
    assert (job.id, job.status) == (id, "queued")
    assert QueuedJob.objects.count() == 1


def test_an_id_that_another_transaction_is_inserting_is_waited_for(
    other: OwnConnection, background: Background
) -> None:
    id = new_id()
    with open_transaction(other) as inserting:
        inserting.run(
            "INSERT INTO jobqueue_queuedjob (id, job_type, data) "
            "VALUES (%(id)s, %(job_type)s, %(data)s)",
            {"id": id, "job_type": ADD, "data": '{"a": 99}'},
        )
        future = background(partial(put_once, id))
        until_waiting()
    assert future.result(30).data == {"a": 99}
    assert QueuedJob.objects.count() == 1
