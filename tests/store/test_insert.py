"""Enqueue: one row in the caller's transaction, and what it is made of."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from psycopg.errors import CheckViolation, ForeignKeyViolation

from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import insert, insert_many, insert_once
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job
from tests.store.rows import ADD, ago, job_type, queued_job

pytestmark = pytest.mark.django_db(transaction=True)

PLAIN = NewJob(job_type=ADD)


def put(new: NewJob = PLAIN, data: Any = None) -> Job:
    """Enqueue one job, whose type must be there."""
    data = {"a": 1} if data is None else data
    job = insert.insert(DjangoDatabase(), new, new_id(), data, json.dumps(data))
    assert job is not None
    return job


def row_of(id: uuid.UUID) -> dict[str, Any]:
    """Every column of the job's row but those that differ from job to job."""
    values = QueuedJob.objects.filter(id=id).values().get()
    own = ("id", "run_after", "created_at")
    return {name: value for name, value in values.items() if name not in own}


def row(job: Job) -> dict[str, Any]:
    return row_of(job.id)


def test_an_enqueued_job_is_a_row_that_is_due_now() -> None:
    before = timezone.now()
    job = put()
    after = timezone.now()

    assert row(job) == {
        "job_type_id": ADD,
        "queue": "default",
        "priority": 0,
        "status": "queued",
        "data": {"a": 1},
        "expires_at": None,
        "expires_in": None,
        "attempts": 0,
        "max_attempts": None,
        "timeout": None,
        "backoff": None,
        "crashes": 0,
        "started_at": None,
        "fence": 0,
        "worker_id": None,
        "quarantined": False,
        "cancel_requested_at": None,
        "replay_of": None,
        "root_id": None,
        "bulk_operation_id": None,
        "enqueued_by": None,
        "tags": None,
        "metadata": None,
        "followers": None,
        "follows": None,
        "limit_key": None,
        "weight": None,
        "unique_key": None,
        "unique_until_started": False,
        "awaited": False,
        "announce": False,
        "cancel_reason": None,
    }
    held = QueuedJob.objects.get(id=job.id)
    assert before <= held.run_after <= after
    assert before <= held.created_at <= after
    assert (job.run_after, job.created_at) == (held.run_after, held.created_at)


def test_what_is_returned_is_what_the_row_says() -> None:
    moment = ago(-60)
    new = NewJob(
        job_type=ADD,
        queue="q",
        priority=7,
        run_after=moment,
        expires_at=ago(-120),
        options={"enqueued_by": "anna", "tags": '["a","b"]'},
    )

    job = put(new)

    held = queued_job(job.id)
    assert held is not None
    assert (held.queue, held.priority, held.run_after) == ("q", 7, moment)
    assert (held.enqueued_by, held.tags) == ("anna", ["a", "b"])
    assert (job.queue, job.priority, job.run_after) == ("q", 7, moment)
    assert (job.status, job.job_type, job.data) == ("queued", ADD, {"a": 1})
    assert job.expires_at == held.expires_at
    assert not job.is_over


def test_a_second_enqueue_within_a_moment_makes_the_same_row() -> None:
    first, second = put(), put()
    assert len(insert._known) == 1  # private: whether the second looked nothing up
    assert row(first) == row(second)
    held = QueuedJob.objects.get(id=second.id)
    assert held.created_at == held.run_after == second.run_after == second.created_at
    assert second.run_after >= first.run_after


def test_what_was_looked_up_for_one_set_of_options_is_not_used_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put()
    hour, before = timedelta(hours=1), timezone.now()
    assert put(NewJob(job_type=ADD, queue="q")).queue == "q"
    assert put(NewJob(job_type=ADD, priority=9)).priority == 9
    other = "tests.sample.aadd"
    assert put(NewJob(job_type=other)).job_type == other
    for name, value in (("enqueued_by", "anna"), ("tags", '["a"]')):
        id = put(NewJob(job_type=ADD, options={name: value})).id
        assert getattr(QueuedJob.objects.get(id=id), name) in ("anna", ["a"])
    assert put(NewJob(job_type=ADD, expires_in=hour)).expires_at is not None
    late = put(NewJob(job_type=ADD, delay=hour))  # by the database's clock
    assert before + hour <= late.run_after <= timezone.now() + hour
    assert (put().priority, put().expires_at) == (0, None)
    # An operator's priority counts when the moment is over.
    JobType.objects.filter(name=ADD).update(priority_override=50)
    assert put().priority == 0
    monkeypatch.setattr(insert, "KNOWN_FOR", 0.0)
    assert put().priority == 50


def test_what_is_looked_up_in_a_transaction_is_not_remembered() -> None:
    with transaction.atomic():
        put()
    assert insert._known == {}  # private: nobody else counts them


def test_the_caller_then_the_operator_then_the_code_choose_the_priority() -> None:
    orders = {  # of the caller, the operator, the code here and in the row
        (5, 4, 3, 2): 5,
        (None, 4, 3, 2): 4,
        (None, None, 3, 2): 3,
        (None, None, None, 2): 2,
        (0, 4, 3, 2): 0,
    }
    chosen = {}
    for order in orders:
        asked, override, declared, of_row = order
        name = job_type(str(order), priority=of_row, priority_override=override)
        job = put(NewJob(job_type=name, priority=asked, declared_priority=declared))
        assert QueuedJob.objects.get(id=job.id).priority == job.priority
        chosen[order] = job.priority
    assert chosen == orders


def test_a_time_to_live_counts_from_when_the_job_is_due() -> None:
    moment, five = ago(-3_600), timedelta(minutes=5)
    job_type("t", queue="of-the-type", expires_in=timedelta(minutes=1))
    by_code = put(NewJob(job_type=ADD, run_after=moment, expires_in=five))
    by_row = [put(NewJob(job_type="t", run_after=moment)) for _ in range(2)]
    by_caller = put(NewJob(job_type="t", run_after=moment, expires_at=ago(-7_200)))
    assert by_code.expires_at == moment + five
    for job in by_row:  # the second, of a type that is known, too
        assert job.expires_at == moment + timedelta(minutes=1)
        assert job.queue == "of-the-type"
    assert by_caller.expires_at is not None
    assert by_caller.expires_at > moment + timedelta(minutes=30)
    assert put(NewJob(job_type="t", queue="q")).queue == "q"


def test_a_job_type_without_a_row_inserts_nothing() -> None:
    db = DjangoDatabase()
    job_type("t")
    put(NewJob(job_type="t"))
    QueuedJob.objects.all().delete()
    JobType.objects.filter(name="t").delete()  # a moment ago
    for name in ("nobody.knows", "t"):
        new = NewJob(job_type=name)
        assert insert.insert(db, new, new_id(), {}, "{}") is None
        assert insert_once.insert_once(db, new, new_id(), {}, "{}") is None
        assert insert_many.insert_many(db, new, [new_id()], ["{}"]) is False
    assert not QueuedJob.objects.exists()


def test_plain_sql_enqueues_with_every_default(own: OwnConnection) -> None:
    sql = "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s) RETURNING id"
    with connection.cursor() as cursor:
        cursor.execute(sql, [ADD, '{"a": 1}'])
        (id,) = cursor.fetchone()
    assert row_of(id) == {**row(put()), "announce": True}
    assert QueuedJob.objects.get(id=id).run_after <= timezone.now()
    assert uuid.UUID(str(id)).version == 7


def test_plain_sql_enqueues_for_no_moment_unknown_to_python(own: OwnConnection) -> None:
    for column in ("run_after", "expires_at", "created_at"):
        for moment in ("infinity", "-infinity", "0044-03-15 BC", "20000-01-01"):
            with pytest.raises(CheckViolation):
                own.run(
                    f"INSERT INTO jobqueue_queuedjob (job_type, {column}) "
                    "VALUES (%(job_type)s, %(moment)s)",
                    {"job_type": ADD, "moment": moment},
                )


def test_ids_made_by_the_database_grow_with_time(own: OwnConnection) -> None:
    with own.raw() as raw:
        made = [
            raw.execute("SELECT jobqueue_uuidv7(), clock_timestamp()").fetchone()
            for _ in range(50)
        ]
    assert all(id.version == 7 for id, _ in made)
    assert all(id.variant == uuid.RFC_4122 for id, _ in made)
    stamps = [id.int >> 80 for id, _ in made]
    assert stamps == sorted(stamps)
    assert all(
        abs(stamp - at.timestamp() * 1_000) < 1_000
        for stamp, (_, at) in zip(stamps, made, strict=True)
    )


def test_a_job_type_with_jobs_cannot_be_deleted(own: OwnConnection) -> None:
    put()
    with pytest.raises(ForeignKeyViolation):
        own.run("DELETE FROM jobqueue_jobtype WHERE name = %(name)s", {"name": ADD})
