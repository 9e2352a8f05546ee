"""Enqueue many: all or none, whatever characters they have; and who is notified."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction

from django_jobqueue.domain.ids import new_id, new_ids
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import insert, insert_many
from django_jobqueue.store.queue.insert_many import COPY_CHUNK, NewJob
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import Hearing
from tests.store.rows import ADD, ago, job_type, register

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


def test_ten_thousand_jobs_are_rows_in_the_order_given() -> None:
    rows = put_many(PLAIN, [{"a": number} for number in range(10_000)])

    assert [row.data["a"] for row in rows] == list(range(10_000))
    assert {row.run_after for row in rows} == {rows[0].run_after}
    assert {(row.status, row.queue, row.attempts, row.fence) for row in rows} == {
        ("queued", "default", 0, 0)
    }


@pytest.mark.parametrize("count", [1, COPY_CHUNK, COPY_CHUNK + 1])
def test_no_job_is_lost_between_chunks(count: int) -> None:
    assert len(put_many(PLAIN, [{}] * count)) == count


def test_odd_characters_come_back_as_they_were() -> None:
    data: list[object] = [{"a": text, text: 1} for text in ODD]

    rows = put_many(PLAIN, data)

    assert [row.data for row in rows] == data


def test_odd_characters_in_who_enqueued_come_back_as_they_were() -> None:
    by = "anna\t\\N\n\r\\."

    (row,) = put_many(NewJob(job_type=ADD, enqueued_by=by), [{}])

    assert row.enqueued_by == by


def test_all_options_hold_for_each_job() -> None:
    moment = ago(-60)
    new = NewJob(
        job_type=ADD,
        queue="q",
        priority=-7,
        run_after=moment,
        expires_in=timedelta(minutes=1),
        enqueued_by="anna",
    )

    rows = put_many(new, [{}, {}])

    assert [
        (r.queue, r.priority, r.run_after, r.expires_at, r.enqueued_by) for r in rows
    ] == [("q", -7, moment, moment + timedelta(minutes=1), "anna")] * 2


def test_tags_hold_for_each_job() -> None:
    rows = put_many(NewJob(job_type=ADD, tags='["a"]'), [{}, {}])

    assert [row.tags for row in rows] == [["a"], ["a"]]


def test_what_the_caller_leaves_open_is_the_job_types() -> None:
    job_type("t", queue="q", priority=3, expires_in=timedelta(hours=1))
    (row,) = put_many(NewJob(job_type="t"), [{}])
    assert (row.queue, row.priority) == ("q", 3)
    assert row.expires_at == row.run_after + timedelta(hours=1)

    JobType.objects.filter(name="t").update(priority_override=4)
    assert [r.priority for r in put_many(NewJob(job_type="t"), [{}])] == [3, 4]


def test_one_job_that_the_database_refuses_refuses_them_all() -> None:
    ids = [new_id(), new_id()]
    ids.append(ids[0])

    with pytest.raises(Exception, match="duplicate key"):
        insert_many.insert_many(DjangoDatabase(), PLAIN, ids, ["{}"] * 3)

    assert not QueuedJob.objects.exists()


def test_what_the_database_refuses_raises_what_django_raises() -> None:
    id = new_id()

    with pytest.raises(DatabaseError, match="duplicate key"):
        insert_many.insert_many(DjangoDatabase(), PLAIN, [id, id], ["{}"] * 2)


def test_jobs_of_a_transaction_that_is_rolled_back_are_gone(
    own: OwnConnection,
) -> None:
    with transaction.atomic():
        rows = put_many(PLAIN, [{}] * 100)
        assert len(rows) == 100
        assert own.fetch("SELECT count(*) FROM jobqueue_queuedjob") == [(0,)]
        transaction.set_rollback(True)

    assert not QueuedJob.objects.exists()


@pytest.mark.parametrize(
    ("listening", "queues", "heard"),
    [
        (True, None, ["q:mail"]),
        (True, ["mail", "other"], ["q:mail"]),
        (True, ["other"], []),
        (True, ["mai", "mails"], []),
        (False, None, []),
    ],
)
@pytest.mark.parametrize("how", ["one", "another", "once", "many"])
def test_only_a_worker_of_the_queue_that_listens_is_notified(
    own: OwnConnection,
    ear: Hearing,
    listening: bool,
    queues: list[str] | None,
    heard: list[str],
    how: str,
) -> None:
    set_listening(own, register(own, queues=queues), listening)
    db, new = DjangoDatabase(), NewJob(job_type=ADD, queue="mail")

    if how == "one":
        insert.insert(db, new, new_id(), {}, "{}")
    elif how == "another":
        insert.insert(db, new, new_id(), {}, "{}")
        ear.heard()
        insert.insert(db, new, new_id(), {}, "{}")
    elif how == "once":
        insert.insert_once(db, new, new_id(), {}, "{}")
    else:
        insert_many.insert_many(db, new, new_ids(3), ["{}"] * 3)

    assert ear.of_queues() == heard


def test_many_jobs_in_one_transaction_are_notified_once(
    own: OwnConnection, ear: Hearing
) -> None:
    set_listening(own, register(own), True)
    with transaction.atomic():
        for _ in range(5):
            insert.insert(DjangoDatabase(), PLAIN, new_id(), {}, "{}")
        assert ear.heard() == []

    assert ear.of_queues() == ["q:default"]
