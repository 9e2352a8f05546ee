"""Unique keys: one job has each, whoever comes at the same time."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import claim, insert_unique
from django_jobqueue.store.queue.insert import Inserted
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import (
    Background,
    Hearing,
    open_transaction,
    together,
    until_waiting,
)
from tests.store.rows import ADD, claimed, lane, make, register

pytestmark = pytest.mark.django_db(transaction=True)

KEY = UUID(int=7)
MOVE = """
WITH gone AS (
  DELETE FROM jobqueue_queuedjob WHERE unique_key = %(key)s
  RETURNING id, job_type, data
)
INSERT INTO jobqueue_archivedjob (id, job_type, status, data)
SELECT id, job_type, 'succeeded', data FROM gone
"""
INSERT = """
INSERT INTO jobqueue_queuedjob (job_type, unique_key, data)
VALUES (%(job_type)s, %(key)s, '{"a": 99}') RETURNING id
"""


def put(
    a: int = 1, key: UUID = KEY, id: UUID | None = None, **new: Any
) -> Inserted | None:
    """Enqueue under this key."""
    return insert_unique.insert_unique(
        DjangoDatabase(),
        NewJob(**{"job_type": ADD, "unique_key": key, **new}),
        id or new_id(),
        {"a": a},
        f'{{"a": {a}}}',
        own_id=id is not None,
    )


def put_many(keys: list[UUID], **new: Any) -> insert_unique.ManyInserted | None:
    """Enqueue a job for each of these keys."""
    calls = {key: (new_id(), f'{{"a": {key.int}}}') for key in keys}
    job = NewJob(**{"job_type": ADD, **new})
    return insert_unique.insert_many_unique(DjangoDatabase(), job, calls)


def test_a_key_that_is_free_makes_a_job_and_one_in_use_gives_the_one_that_has_it(
    own: OwnConnection, holder: int
) -> None:
    first = put(a=1)
    assert first is not None
    assert first.is_new
    held = QueuedJob.objects.get(id=first.job.id)
    assert (held.unique_key, held.unique_until_started) == (KEY, False)
    with transaction.atomic():  # which a duplicate leaves usable
        second = put(a=2)
        put(key=UUID(int=8))
    assert second is not None
    assert not second.is_new
    assert (second.job.id, second.job.data) == (first.job.id, {"a": 1})
    claimed(own, holder)
    third = put(a=3)
    assert third is not None
    assert (third.job.id, third.job.status) == (first.job.id, "running")
    assert QueuedJob.objects.count() == 2


def test_a_key_until_the_start_ends_so(own: OwnConnection, holder: int) -> None:
    put(unique_until_started=True)
    claimed(own, holder)
    inserted = put(unique_until_started=True)
    assert inserted is not None
    assert inserted.is_new
    assert QueuedJob.objects.count() == 2


FOLLOWED_BY_NOBODY: dict[str, Any] = {
    "followers": '{"on_success": ["nobody.knows"]}',
    "follower_types": ["nobody.knows"],
}


def test_a_type_without_a_row_inserts_nothing() -> None:
    assert put(job_type="nobody.knows") is None
    assert put_many([KEY], job_type="nobody.knows") is None
    assert put(**FOLLOWED_BY_NOBODY) is None
    assert put_many([KEY], **FOLLOWED_BY_NOBODY) is None
    assert not QueuedJob.objects.exists()


def test_many_callers_with_one_key_make_one_job() -> None:
    inserted = together([partial(put, a=number) for number in range(24)])
    (held,) = QueuedJob.objects.all()
    assert {one.job.id for one in inserted} == {held.id}
    assert sum(one.is_new for one in inserted) == 1


@pytest.mark.parametrize("undone", [True, False])
def test_another_transactions_insert_is_waited_for_and_counts_unless_it_is_undone(
    other: OwnConnection, background: Background, undone: bool
) -> None:
    with open_transaction(other, undone=undone) as inserting:
        inserting.run(INSERT, {"job_type": ADD, "key": KEY})
        future = background(put)
        until_waiting()
    inserted = future.result(30)
    assert inserted.is_new is undone
    assert inserted.job.data == {"a": 1 if undone else 99}
    assert QueuedJob.objects.count() == 1


@pytest.mark.parametrize("verb", [put, partial(put_many, [KEY])])
def test_a_job_that_is_being_archived_is_waited_for_and_replaced(
    other: OwnConnection, background: Background, verb: Any
) -> None:
    old = make(unique_key=KEY)
    with open_transaction(other) as moving:
        moving.run(MOVE, {"key": KEY})
        future = background(verb)
        until_waiting()
    assert future.result(30) is not None
    (held,) = QueuedJob.objects.all()
    assert held.id != old
    assert held.unique_key == KEY


def test_who_holds_the_key_until_its_start_is_claimed_after_the_callers_commit(
    own: OwnConnection, holder: int, ear: Hearing
) -> None:
    """So the job sees what the caller wrote, which found that it waits already."""
    put(unique_until_started=True)
    with transaction.atomic():
        inserted = put(unique_until_started=True)
        assert inserted is not None
        assert not inserted.is_new
        assert claim.claim(own, holder, [lane()], 1) == []
        ear.heard()
    assert ear.heard() == ["b:default"]
    assert [job.id for job in claimed(own, holder)] == [inserted.job.id]


def test_who_holds_the_key_until_its_end_may_be_claimed_meanwhile(
    own: OwnConnection, holder: int
) -> None:
    put()
    with transaction.atomic():
        put()
        assert len(claimed(own, holder)) == 1


def test_an_id_and_a_key_each_make_it_one_job() -> None:
    id = uuid4()
    first = put(id=id)
    again = put(id=id, a=2)
    other = put(a=3)
    other_id = put(id=uuid4(), a=4)
    assert first is not None
    assert first.is_new
    for one in (again, other, other_id):
        assert one is not None
        assert not one.is_new
        assert one.job.id == id


def test_many_are_inserted_unless_their_key_is_used(
    own: OwnConnection, ear: Hearing
) -> None:
    held = make(unique_key=UUID(int=5))
    set_listening(own, register(own), True)
    keys = [UUID(int=number) for number in range(1, 1_501)]
    assert put_many(keys) == ({UUID(int=5): held}, {})
    assert QueuedJob.objects.count() == 1_500
    data = QueuedJob.objects.exclude(id=held).values_list("unique_key", "data")
    assert all(key.int == value["a"] for key, value in data)
    assert set(ear.of_queues()) == {"q:default"}  # of each part
    put(key=UUID(int=5_000))
    assert ear.of_queues() == ["q:default"]


def test_two_who_insert_many_of_the_same_do_not_deadlock() -> None:
    keys = [UUID(int=number) for number in range(1, 1_500)]
    together([partial(put_many, order) for order in (keys, keys[::-1]) * 3])
    assert QueuedJob.objects.count() == len(keys)
