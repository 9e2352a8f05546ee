"""Idle workers are notified of jobs when their transaction commits, however late."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.backends.postgresql.psycopg_any import IsolationLevel

from django_jobqueue import enqueue, enqueue_many
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import insert
from django_jobqueue.store.worker_rows import set_listening
from tests.sample import jobs
from tests.store.meanwhile import Hearing
from tests.store.rows import forget_job_types, register

pytestmark = pytest.mark.django_db(transaction=True)

NEWS = "q:default"
ENQUEUES: dict[str, Callable[[], Any]] = {
    "a plain job": lambda: jobs.add.enqueue(1),
    "a second plain job, of a type that is known": lambda: (
        jobs.add.enqueue(1),
        jobs.add.enqueue(2),
    ),
    "a job with options": lambda: jobs.add.using(priority=3, tags=["a"]).enqueue(1),
    "a job with more options": lambda: jobs.add.using(metadata={"a": 1}).enqueue(1),
    "a job with an id": lambda: jobs.add.using(id="0" * 32).enqueue(1),
    "a unique job": lambda: jobs.add_alone.enqueue(1),
    "a job by its name": lambda: enqueue("tests.sample.add", {"a": 1}),
    "many": lambda: jobs.add.enqueue_many([{"a": 1}, {"a": 2}]),
    "many by name": lambda: enqueue_many("tests.sample.add", [{"a": 1}] * 3),
    "many unique jobs": lambda: jobs.add_alone.enqueue_many([{"a": 11}, {"a": 12}]),
    "a row of a model": lambda: QueuedJob.objects.create(
        job_type_id="tests.sample.add"
    ),
    "plain SQL": lambda: sql(
        "INSERT INTO jobqueue_queuedjob (job_type) VALUES ('tests.sample.add')"
    ),
}


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def idle(own: OwnConnection, ear: Hearing) -> Callable[[], None]:
    """A worker becomes idle, and says so."""
    worker = register(own)
    return lambda: set_listening(own, worker, True)


def test_whoever_is_idle_at_the_commit_is_notified(
    own: OwnConnection, ear: Hearing
) -> None:
    worker, heard = register(own), {}
    for what, enqueue_ in ENQUEUES.items():
        for when in ("never", "before", "in a transaction"):
            QueuedJob.objects.all().delete()
            forget_job_types()
            set_listening(own, worker, when == "before")
            if when == "in a transaction":  # idle after the insert
                with transaction.atomic():
                    enqueue_()
                    set_listening(own, worker, True)
                    assert ear.heard() == []
            else:
                enqueue_()
            heard[what, when] = set(ear.of_queues())
    assert heard == {key: {NEWS} if key[1] != "never" else set() for key in heard}


def announced() -> int:
    return QueuedJob.objects.filter(announce=True).count()


def test_one_job_of_a_transaction_announces_all_of_its_kind() -> None:
    jobs.add.enqueue(0)  # the next ones are inserted without a look at the job type
    with transaction.atomic():
        for n in range(5):
            jobs.add.enqueue(n)
        jobs.add.enqueue_many([{"a": 1}, {"a": 2}])
        assert announced() == 1
        jobs.add.using(queue="mail").enqueue(1)
        assert announced() == 2
    with transaction.atomic():
        jobs.add.enqueue(1)
    assert announced() == 3
    jobs.add.enqueue_many([{"a": 1}])
    assert announced() == 3


def test_an_announcement_that_is_rolled_back_is_made_again(
    idle: Callable[[], None], ear: Hearing
) -> None:
    idle()
    for _known in (False, True):
        with transaction.atomic():
            with suppress(ZeroDivisionError), transaction.atomic():
                jobs.add.enqueue(1)
                raise ZeroDivisionError
            jobs.add.enqueue(2)
            with transaction.atomic():
                jobs.add.enqueue(3)
        assert ear.of_queues() == [NEWS]
        with suppress(ZeroDivisionError), transaction.atomic():
            jobs.add.enqueue(4)
            raise ZeroDivisionError
        assert ear.heard() == []
        jobs.add.enqueue(5)
        assert ear.of_queues() == [NEWS]


def test_a_job_that_was_there_already_announces_nothing(
    idle: Callable[[], None], ear: Hearing
) -> None:
    index = jobs.index.using(priority=5)
    index.enqueue(1)
    idle()
    with transaction.atomic():
        index.enqueue(1)  # nothing is inserted
        index.enqueue(2)
    assert NEWS in ear.of_queues()


def test_transactions_without_a_block_of_djangos_announce_each(
    idle: Callable[[], None], ear: Hearing
) -> None:
    idle()
    connection.set_autocommit(False)
    try:
        for n in range(2):
            jobs.add.enqueue(n)
            connection.commit()
            assert ear.of_queues() == [NEWS]
    finally:
        connection.rollback()
        connection.set_autocommit(True)


def test_a_transaction_that_sees_the_past_notifies_if_it_took_its_time(
    idle: Callable[[], None], ear: Hearing
) -> None:
    connections["default"].ensure_connection()
    raw = connections["default"].connection
    raw.isolation_level = IsolationLevel.REPEATABLE_READ
    try:
        with transaction.atomic():
            jobs.add.enqueue(1)
            sql("SELECT pg_sleep(0.15)")
            idle()
        assert ear.of_queues() == [NEWS]
    finally:
        raw.isolation_level = None


def test_what_is_known_of_job_types_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insert, "MOST_KNOWN", 3)
    for n in range(10):
        jobs.add.using(priority=n).enqueue(1)
        assert len(insert._known) <= 3  # private: nobody else counts them
