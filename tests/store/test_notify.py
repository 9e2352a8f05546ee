"""Notify: what is said in the one channel, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from django.db import transaction

from django_jobqueue.domain.ids import new_id
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.notify import News, notify, parse, payload
from django_jobqueue.store.queue import insert
from django_jobqueue.store.queue.announcing import FIRST_TURN, SECOND_TURN
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.worker_rows import set_listening
from tests.sample import jobs
from tests.store.meanwhile import Hearing, open_transaction
from tests.store.rows import ADD, register


def test_what_is_said_is_understood_and_what_is_none_of_ours_ignored() -> None:
    every = [(n, a) for n in News for a in ("", "default", "a:b", "ü", 7)]
    assert [parse(payload(*one)) for one in every] == [(n, str(a)) for n, a in every]
    texts = ("", ":", "x:", "jobs", "qq:a", "Q:a", "\x00:")
    assert [parse(text) for text in texts] == [None] * len(texts)


def test_what_is_said_is_heard_at_the_commit(own: OwnConnection, ear: Hearing) -> None:
    notify(own, News.CONTROL, 7)
    notify(DjangoDatabase(), News.JOB_TYPES)
    assert ear.heard() == ["w:7", "t:"]
    with open_transaction(own) as transaction:
        notify(transaction, News.JOBS, "default")
        assert ear.heard() == []
    assert ear.heard() == ["q:default"]


@pytest.fixture
def third(transactional_db: None) -> Iterator[OwnConnection]:
    """A connection beside ``own`` and the ear's."""
    with closing(OwnConnection("tests")) as made:
        yield made


@contextmanager
def about_to_notify(
    db: OwnConnection, queue: str, turn: str = FIRST_TURN
) -> Iterator[None]:
    """One who enqueues into this queue, just before it commits; or who did so, just
    before it notifies."""
    with open_transaction(db) as transaction:
        row = "(SELECT %(queue)s, %(job_type)s) AS job (queue, job_type)"
        params = {"queue": queue, "job_type": ADD}
        assert transaction.fetch(f"SELECT {turn} FROM {row}", params) == [(True,)]
        yield


def enqueue() -> None:
    new = NewJob(job_type=ADD)
    insert.insert(DjangoDatabase(), new, new_id(), {}, "{}")


@pytest.fixture(params=["a type not enqueued yet", "a type that is known"])
def idle(request: pytest.FixtureRequest, own: OwnConnection, ear: Hearing) -> None:
    """A worker says that it is idle; the job type was perhaps looked up a moment
    ago."""
    set_listening(own, register(own), True)
    if request.param == "a type that is known":
        enqueue()
        assert ear.of_queues() == ["q:default"]


ENQUEUES = {
    "one": enqueue,
    "with an id": lambda: jobs.add.using(id=new_id()).enqueue(1),
    "with options": lambda: jobs.add.using(tags=["a"]).enqueue(1),
    "debounced": lambda: jobs.add.using(
        unique_key=f"{new_id()}", on_duplicate="replace"
    ).enqueue(1),
    "many": lambda: jobs.add.enqueue_many([{"a": 1}, {"a": 2}]),
}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("kind", ENQUEUES)
def test_whoever_leaves_it_to_others_knows_that_they_commit_later(
    own: OwnConnection, third: OwnConnection, ear: Hearing, kind: str
) -> None:
    enqueue = ENQUEUES[kind]
    enqueue()
    assert ear.of_queues() == ["q:default"]
    with about_to_notify(own, "default"):
        enqueue()  # that one may commit before this one does
        assert ear.of_queues() == ["q:default"]
        with about_to_notify(third, "default", SECOND_TURN):
            enqueue()
            assert ear.heard() == []
    # Those of another queue notify for themselves.
    with about_to_notify(own, "mail"), about_to_notify(third, "mail", SECOND_TURN):
        enqueue()
        assert ear.of_queues() == ["q:default"]


@pytest.mark.usefixtures("idle")
def test_in_a_transaction_each_notifies_and_keeps_nobody_from_it(
    own: OwnConnection, third: OwnConnection, ear: Hearing
) -> None:
    with transaction.atomic():
        enqueue()
        with (
            about_to_notify(own, "default"),
            about_to_notify(third, "default", SECOND_TURN),
        ):
            enqueue()
    assert ear.of_queues() == ["q:default"]
