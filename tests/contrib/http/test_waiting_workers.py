"""Requests that wait for jobs: who is woken, and how many connections they hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections

from django_jobqueue import enqueue_many
from django_jobqueue.contrib.http.long_polls import LongPolls
from django_jobqueue.contrib.remote import waiting_workers
from django_jobqueue.contrib.remote.waiting_workers import (
    FOLLOWERS,
    MOST_ASKING,
    WaitingWorkers,
)
from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.contrib.http.conftest import Program
from tests.contrib.http.test_remote_workers import TYPE, Remote
from tests.sample import jobs
from tests.support.waiting import eventually

MANY = MOST_ASKING + 4
CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend'
"""


def test_the_first_of_a_group_looks_and_wakes_the_next_when_it_goes() -> None:
    waiting = WaitingWorkers()
    events = [threading.Event() for _ in range(4)]
    with waiting.waiting("a", events[0]):
        with waiting.waiting("a", events[1]), waiting.waiting("b", events[2]):
            assert waiting.is_first("a", events[0])
            assert not waiting.is_first("a", events[1])
            assert waiting.is_first("b", events[2])
        assert not any(one.is_set() for one in events)
    entered = [waiting.waiting("a", one) for one in events]
    for one in entered:
        one.__enter__()
    entered[1].__exit__(None, None, None)
    assert not any(one.is_set() for one in events)  # it was not the first
    entered[0].__exit__(None, None, None)
    assert [one.is_set() for one in events] == [False, False, True, False]
    assert waiting.is_first("a", events[2])
    assert not waiting.is_first("b", events[2])


def test_who_got_jobs_wakes_some_others_of_its_group() -> None:
    waiting = WaitingWorkers()
    events = [threading.Event() for _ in range(FOLLOWERS + 2)]
    other = threading.Event()
    with ExitStack() as stack:
        for one in events:
            stack.enter_context(waiting.waiting("a", one))
        stack.enter_context(waiting.waiting("b", other))
        waiting.got_jobs("a", events[0])
        states = [one.is_set() for one in events]
    assert states == [False, *[True] * FOLLOWERS, False]
    assert not other.is_set()


def claim(node: Remote, wait: int = 30) -> Any:
    """Wait for a job, in a thread."""
    return claimed(node, wait)["jobs"]


def claimed(node: Remote, wait: int = 30) -> Any:
    """The answer to it."""
    try:
        return node.send("POST", "/claim", {"limit": 1, "wait": wait}).json()
    finally:
        connections["default"].close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("many_long_polls")
def test_many_that_wait_hold_few_connections_and_each_gets_a_job(
    billing: Program,
) -> None:
    JobType.objects.create(name=TYPE)
    nodes = [Remote(billing) for _ in range(MANY)]
    others = count_connections()  # that tests before it have left
    with ThreadPoolExecutor(MANY) as pool:
        answers = [pool.submit(claim, node) for node in nodes]
        eventually(lambda: Worker.objects.filter(listening=True).count() == MANY)
        eventually(lambda: count_connections() <= others + MOST_ASKING)
        assert not any(one.done() for one in answers)
        enqueue_many(TYPE, [{"n": n} for n in range(MANY)])
        got = [job["id"] for one in answers for job in one.result(30)]
    assert len(set(got)) == MANY
    assert not QueuedJob.objects.filter(status="queued").exists()
    assert not Worker.objects.filter(listening=True).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("many_long_polls")
def test_others_go_on_when_the_first_one_gives_up(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    JobType.objects.create(name=TYPE)
    first, second = Remote(billing), Remote(billing)
    with ThreadPoolExecutor(2) as pool:
        short = pool.submit(claim, first, 1)
        eventually(lambda: Worker.objects.filter(listening=True).count() == 1)
        long = pool.submit(claim, second)
        assert short.result(20) == []
        enqueue_many(TYPE, [{"n": 1}])
        assert len(long.result(20)) == 1


def test_who_waits_most_gives_up_its_oldest_to_whom_waits_less(settings: Any) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "HTTP_LONG_POLLS": 3}
    polls = LongPolls()
    made = [polls.enter(caller) for caller in "aaabc"]
    entered = [one for one in made if one is not None]
    assert len(entered) == 5
    assert [one.is_over for one in entered] == [True, True, False, False, False]
    assert [one.woken.is_set() for one in entered] == [one.is_over for one in entered]
    assert [polls.enter(caller) for caller in "abc"] == [None] * 3  # each has one
    for one in entered:
        polls.leave(one)
    assert all(polls.enter("a") for _ in range(3))
    assert polls.enter("a") is None


@pytest.mark.django_db(transaction=True)
def test_a_request_that_gives_up_its_place_is_answered_at_once(
    program: Callable[..., Program], settings: Any
) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "HTTP_LONG_POLLS": 1}
    JobType.objects.create(name=TYPE)
    first, second, third = Remote(program()), program(), Remote(program())
    id = jobs.add.enqueue(1).id
    with ThreadPoolExecutor(3) as pool:
        claiming = pool.submit(claimed, first)
        eventually(lambda: Worker.objects.filter(listening=True).exists())
        waiting = pool.submit(get, second, id)
        given_up = claiming.result(20)
        assert given_up["jobs"] == []
        assert given_up["poll_seconds"] > 0  # or both would come again and again
        eventually(lambda: QueuedJob.objects.filter(awaited=True).exists())
        claiming = pool.submit(claimed, third)
        assert waiting.result(20)["finished_at"] is None
        enqueue_many(TYPE, [{}])
        assert len(claiming.result(20)["jobs"]) == 1


def get(program: Program, id: UUID) -> Any:
    """Wait for a job, in a thread."""
    try:
        return program.send("GET", f"/jobs/{jobs.add.name}/job_{id}?wait=30").json()
    finally:
        connections["default"].close()


def count_connections() -> int:
    """Of clients to the database of this test, but for this one."""
    with connection.cursor() as cursor:
        cursor.execute(CONNECTIONS)
        return int(cursor.fetchone()[0]) - 1


@pytest.fixture
def many_long_polls(settings: Any) -> None:
    """As in a process of ASGI."""
    assert waiting_workers.MOST_ASKING == MOST_ASKING
    settings.JOBQUEUE = {**settings.JOBQUEUE, "HTTP_LONG_POLLS": 2 * MANY}
