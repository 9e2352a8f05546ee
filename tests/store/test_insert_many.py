"""Enqueue many: all or none, whatever characters they have; and who is notified."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction

from django_jobqueue.domain.ids import new_id, new_ids
from django_jobqueue.models import JobType, QueuedJob, Worker
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import insert, insert_many, insert_once
from django_jobqueue.store.queue.insert_many import COPY_CHUNK, NewJob
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import Hearing
from tests.store.rows import ADD, forget_job_types, job_type, register

pytestmark = pytest.mark.django_db(transaction=True)

ODD = (
    "",
    "\t",
    "\n",
    "\r\n",
    "\\",
    "\\N",
    "\\.",
    "a\\tb\\\\n",
    '"',
    "'",
    "\x01\x1f\x7f",
    "\u2028\u2029\x85",
    "ünïcødé",
    "日本語",
    "😀",
    "{}",
    "%s %(a)s",
    "x" * 100_000,
)
PLAIN = NewJob(job_type=ADD)


def put_many(new: NewJob, data: list[object]) -> list[QueuedJob]:
    """Enqueue these; return the rows in the order of their ids."""
    texts = [json.dumps(one, ensure_ascii=False) for one in data]
    assert insert_many.insert_many(DjangoDatabase(), new, new_ids(len(data)), texts)
    return list(QueuedJob.objects.order_by("id"))


def test_many_jobs_are_rows_in_order_and_none_is_lost_between_chunks() -> None:
    for count in (1, COPY_CHUNK, 3 * COPY_CHUNK + 1):
        rows = put_many(PLAIN, [{"a": number} for number in range(count)])
        assert [row.data["a"] for row in rows] == list(range(count))
        assert {row.run_after for row in rows} == {rows[0].run_after}
        columns = {(row.status, row.queue, row.attempts, row.fence) for row in rows}
        assert columns == {("queued", "default", 0, 0)}
        QueuedJob.objects.all().delete()


def test_odd_characters_come_back_as_they_were() -> None:
    data: list[object] = [{"a": text, text: 1} for text in ODD]
    by = "anna\t\\N\n\r\\."
    rows = put_many(NewJob(job_type=ADD, options={"enqueued_by": by}), data)
    assert [row.data for row in rows] == data
    assert {row.enqueued_by for row in rows} == {by}


def test_what_the_caller_leaves_open_is_the_job_types() -> None:
    job_type("t", queue="q", priority=3, expires_in=timedelta(hours=1))
    (row,) = put_many(NewJob(job_type="t"), [{}])
    assert (row.queue, row.priority) == ("q", 3)
    assert row.expires_at == row.run_after + timedelta(hours=1)
    JobType.objects.filter(name="t").update(priority_override=4)
    assert [r.priority for r in put_many(NewJob(job_type="t"), [{}])] == [3, 4]


def test_one_job_that_the_database_refuses_refuses_them_all() -> None:
    ids = [new_id(), new_id()]
    with pytest.raises(DatabaseError, match="duplicate key"):
        insert_many.insert_many(DjangoDatabase(), PLAIN, [*ids, ids[0]], ["{}"] * 3)
    assert not QueuedJob.objects.exists()


def test_many_jobs_that_are_rolled_back_are_gone(own: OwnConnection) -> None:
    with transaction.atomic():
        rows = put_many(PLAIN, [{}] * 100)
        assert len(rows) == 100
        assert own.fetch("SELECT count(*) FROM jobqueue_queuedjob") == [(0,)]
        transaction.set_rollback(True)
    assert not QueuedJob.objects.exists()


def test_only_a_worker_of_the_queue_that_listens_is_notified(
    own: OwnConnection, ear: Hearing
) -> None:
    db, new = DjangoDatabase(), NewJob(job_type=ADD, queue="mail")
    ways = {
        "one": lambda: insert.insert(db, new, new_id(), {}, "{}"),
        "another": lambda: insert.insert(db, new, new_id(), {}, "{}"),
        "once": lambda: insert_once.insert_once(db, new, new_id(), {}, "{}"),
        "many": lambda: insert_many.insert_many(db, new, new_ids(3), ["{}"] * 3),
    }
    wrong = {}
    for listening, queues, heard in [
        (True, None, ["q:mail"]),
        (True, ["mail", "other"], ["q:mail"]),
        (True, ["other"], []),
        (True, ["mai", "mails"], []),
        (False, None, []),
    ]:
        Worker.objects.all().delete()
        forget_job_types()
        set_listening(own, register(own, queues=queues), listening)
        for way, enqueue in ways.items():
            enqueue()
            if (got := ear.of_queues()) != heard:
                wrong[listening, str(queues), way] = got
    assert wrong == {}
