"""A job is a row: whatever inserts it, it gets what its type says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection
from psycopg.types.json import Jsonb

from django_jobqueue import DuplicateJob, Handler, enqueue, enqueue_many
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.policy import READABLE
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType, Queue, QueuedJob
from tests.sample import jobs
from tests.support.rows import queued

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
ALL_OPTIONS = "tests.sample.with_all_options"
INSERT = """
INSERT INTO jobqueue_queuedjob (job_type, data{columns})
VALUES (%(job_type)s, %(data)s{values}) RETURNING id
"""


def insert(job_type: str = ALL_OPTIONS, data: Any = None, **columns: Any) -> QueuedJob:
    """Enqueue by plain SQL, and return what became of the row."""
    statement = INSERT.format(
        columns="".join(f", {name}" for name in columns),
        values="".join(f", %({name})s" for name in columns),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            statement, {"job_type": job_type, "data": Jsonb(data or {}), **columns}
        )
        return queued(id=cursor.fetchone()[0])[0]


def options(row: QueuedJob) -> dict[str, Any]:
    """What a job type decides of a row."""
    assert row.expires_at is not None
    return {
        "queue": row.queue,
        "priority": row.priority,
        "lives": row.expires_at - row.run_after,
        "followers": row.followers,
        "unique_key": row.unique_key,
        "unique_until_started": row.unique_until_started,
    }


PRODUCERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "plain SQL": lambda data: insert(data=data).pk,
    "a row of a model": lambda data: (
        QueuedJob.objects.create(job_type_id=ALL_OPTIONS, data=data).pk
    ),
    "many rows of a model": lambda data: (
        QueuedJob.objects.bulk_create([QueuedJob(job_type_id=ALL_OPTIONS, data=data)])
        and queued()[-1].pk
    ),
    "a name": lambda data: enqueue(ALL_OPTIONS, data).id,
    "many by name": lambda data: enqueue_many(ALL_OPTIONS, [data])[0],
}


@contextmanager
def without(*handlers: Handler[..., Any]) -> Iterator[None]:
    """As in a process without the code of these."""
    held = [registry.get(handler.name) for handler in handlers]
    for handler in handlers:
        registry.remove(handler.name)
    try:
        yield
    finally:
        for handler, declaration in zip(handlers, held, strict=True):
            assert declaration is not None
            registry.add(declaration)
            registry.send_as(handler.name, handler)


def test_a_job_has_the_options_of_its_type_whoever_inserts_it() -> None:
    for data in ({"a": 1}, {"b": "ü", "a": 1}, {"b": "x", "a": 1.5}):
        (row,) = queued(id=jobs.with_all_options.enqueue(**data).id)
        wanted = {
            "queue": "mail",
            "priority": 7,
            "lives": HOUR,
            "followers": {"on_complete": ["tests.sample.report"]},
            "unique_key": row.unique_key,
            "unique_until_started": True,
        }
        assert wanted["unique_key"] is not None
        assert options(row) == wanted
        for place in (nullcontext(), without(jobs.with_all_options)):
            with place:
                for name, produce in PRODUCERS.items():
                    QueuedJob.objects.all().delete()
                    assert options(queued(id=produce(data))[0]) == wanted, name
        QueuedJob.objects.all().delete()


def test_what_a_row_says_itself_stands() -> None:
    made = insert(
        queue="other",
        followers=Jsonb({"on_success": ["tests.sample.followed"]}),
        unique_key="0" * 32,
    )
    assert (made.queue, made.priority) == ("other", 7)
    assert made.followers == {
        "on_success": ["tests.sample.followed"],
        "on_complete": ["tests.sample.report"],
    }
    assert made.unique_key is not None
    assert made.unique_key.int == 0
    assert (made.expires_at, made.expires_in) == (made.run_after + HOUR, HOUR)
    for last in ({"run_after": READABLE[1]}, {"expires_at": READABLE[1]}):
        assert insert(**last, unique_key=uuid4()).expires_at == READABLE[1]


def test_a_type_without_options_gives_the_defaults_and_an_operators_priority() -> None:
    JobType.objects.create(name="plain.type")
    made = insert("plain.type")
    assert (made.queue, made.priority, made.expires_at) == ("default", 0, None)
    made = insert(queue="other", priority=0)  # a row that is taken as it is
    assert (made.queue, made.priority) == ("other", 0)
    assert (made.expires_at, made.followers, made.unique_key) == (None, None, None)
    JobType.objects.filter(name=ALL_OPTIONS).update(priority_override=-3)
    assert insert().priority == -3


MOMENTS = {
    Schedule: ("starts_at", "ends_at", "next_at"),
    JobType: ("resume_at",),
    Queue: ("resume_at",),
    Token: ("expires_at",),
}


def test_a_moment_that_python_cannot_read_is_refused() -> None:
    """It would fail each page and command that reads this row among others."""
    JobType.objects.create(name="plain.type")
    Queue.objects.create(name="plain")
    Schedule.objects.create(name="plain", job_type_id="plain.type", rule="every 9")
    Token.objects.create(name="plain", digest=b"")
    for model, columns in MOMENTS.items():
        table = model._meta.db_table
        for column, word in product(columns, ("infinity", "-infinity", "99999-01-01")):
            with (
                connection.cursor() as cursor,
                pytest.raises(IntegrityError, match="check constraint"),
            ):
                cursor.execute(f"UPDATE {table} SET {column} = %s", [word])


def test_a_type_that_is_not_there_is_what_is_refused() -> None:
    with pytest.raises(IntegrityError, match="foreign key"):
        insert("nobody.knows")


def test_a_duplicate_by_plain_sql_is_refused_and_can_be_left_out() -> None:
    first = jobs.with_all_options.enqueue(a=1)
    with pytest.raises(IntegrityError, match="jobqueue_q_unique"):
        insert(data={"a": 1})
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) "
            'VALUES (%s, \'{"a": 1, "b": "none"}\') ON CONFLICT DO NOTHING',
            [ALL_OPTIONS],
        )
    assert [row.id for row in queued()] == [first.id]


def test_equal_data_have_one_key_however_they_are_written() -> None:
    for one, other in [
        ({"a": 1}, {"b": "none", "a": 1}),
        ({"a": {"x": 1, "yy": [1, {"p": 2, "q": 3}]}},) * 2,
        ({"a": 'ü\n"\\\u2028😀'},) * 2,
        ({"a": 1e-7}, {"a": 0.0000001}),
        ({"a": 1e15}, {"a": 1000000000000000.0}),
        ({"a": -0.5, "b": True}, {"b": True, "a": -0.5}),
    ]:
        jobs.with_all_options.enqueue(**one)
        with pytest.raises(IntegrityError, match="jobqueue_q_unique"):
            insert(data=other)


def test_a_process_without_the_code_refuses_duplicates_too() -> None:
    first = jobs.index.enqueue(7)
    other = jobs.add_alone.enqueue(7)
    with without(jobs.index, jobs.add_alone):
        # The type says what becomes of a duplicate, unless the caller does.
        assert enqueue("tests.sample.index", {"document": 7, "why": "again"}) == first
        with pytest.raises(DuplicateJob) as caught:
            enqueue("tests.sample.add_alone", {"a": 7, "b": 0})
        assert caught.value.job == other
        assert enqueue_many("tests.sample.index", [{"document": 7}]) == [first.id]
