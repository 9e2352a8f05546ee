"""Waiting for the end of jobs, in threads and in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_jobqueue import InvalidArguments, JobNotFound, await_, cancel, wait
from django_jobqueue import waiting as awaiting
from django_jobqueue.domain.ids import new_id
from django_jobqueue.store.connection import OwnConnection
from tests.backends.conftest import in_a_loop, working
from tests.sample import jobs, tasks
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued
from tests.support.waiting import eventually

HOUR = 3_600


@pytest.fixture
def _only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again by himself: who is not told waits for ever."""
    monkeypatch.setattr(awaiting, "CHECK_HEARD", HOUR)
    monkeypatch.setattr(awaiting, "CHECK_UNHEARD", HOUR)


def in_thread(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Call it in another thread; its value, or error, is in the list when it ends."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def test_a_wait_that_could_never_end_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="timeout must be"):
        wait(new_id(), timeout=float("nan"))


@pytest.mark.usefixtures("_only_told", "transactional_db")
def test_a_job_that_ends_while_somebody_waits_is_told() -> None:
    """A result is refreshed, too."""
    job, result = jobs.add.enqueue(1, 2), tasks.add.enqueue(1, 2)
    calls = (lambda: wait(job.id, timeout=60), lambda: result.wait(timeout=60))
    threads = [in_thread(call) for call in calls]
    eventually(lambda: all(job.awaited for job in queued()), what="the waits to begin")
    with working():
        for thread, _ in threads:
            thread.join()
    (ended,), (found,) = (found for _, found in threads)
    assert (ended.id, ended.status, ended.result) == (job.id, "succeeded", 3)
    assert (found, result.return_value) == (result, 3)


@pytest.mark.usefixtures("_only_told", "transactional_db")
def test_a_job_that_is_cancelled_is_over_too() -> None:
    job = jobs.add.enqueue(1)
    thread, found = in_thread(lambda: wait(job.id))
    listener = awaiting._listener  # private: it is there before it hears
    eventually(lambda: queued()[0].awaited and listener.hears)
    cancel([job.id])
    thread.join()
    assert found[0].status == "cancelled"


@pytest.mark.usefixtures("transactional_db")
def test_a_job_that_is_over_is_not_waited_for(worker: HandDriven) -> None:
    job = jobs.add.enqueue(1)
    worker.work()
    assert wait(job.id, timeout=0).status == "succeeded"
    # private: its thread and connection would be made at the first real wait
    assert awaiting._listener._listener is None
    with pytest.raises(JobNotFound):
        wait(new_id())
    with transaction.atomic():
        mine = jobs.add.enqueue(1)
        with pytest.raises(RuntimeError, match="cannot be waited for in a transaction"):
            wait(mine.id)


@pytest.mark.usefixtures("transactional_db")
def test_a_wait_ends_at_its_timeout_and_leaves_no_connection() -> None:
    job = jobs.add.enqueue(1)
    with pytest.raises(TimeoutError, match="is not over yet"):
        wait(job.id, timeout=0.05)
    with pytest.raises(TimeoutError):
        async_to_sync(await_)(job.id, timeout=0.05)
    other = OwnConnection("tests")
    ask = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'jobqueue wait'"
    eventually(lambda: other.fetch(ask) == [], what="the connection to be closed")
    other.close()


@pytest.mark.usefixtures("transactional_db")
def test_the_database_is_asked_twice_however_long_it_takes() -> None:
    job = jobs.add.enqueue(1)
    with working() as worker:
        eventually(lambda: not queued() and worker.is_empty)
    job = jobs.slow.enqueue(0.0)
    with CaptureQueriesContext(connection) as queries, working():
        wait(job.id, timeout=30)
    asked = [q["sql"].split()[0] for q in queries if "pg_notify" not in q["sql"]]
    assert asked[0] == "UPDATE"
    assert set(asked[1:]) == {"SELECT"}
    assert len(asked) <= 3


@pytest.mark.usefixtures("transactional_db")
def test_only_awaited_jobs_are_notified(worker: HandDriven, own: OwnConnection) -> None:
    jobs.add.enqueue(1)
    awaited_one = jobs.add.enqueue(2)
    with pytest.raises(TimeoutError):
        wait(awaited_one.id, timeout=0)
    with own.raw() as listening:
        listening.execute("LISTEN jobqueue")
        worker.work()
        heard = [n.payload for n in listening.notifies(timeout=0.2)]
    assert [text for text in heard if text.startswith("o:")] == [f"o:{awaited_one.id}"]


async def aeventually(condition: Callable[[], bool]) -> None:
    """``eventually``, without keeping the thread that others wait for."""
    async with asyncio.timeout(20):
        while not await sync_to_async(condition)():
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("_only_told", "transactional_db")
@in_a_loop
async def test_many_wait_in_one_event_loop() -> None:
    enqueued = [await jobs.add.aenqueue(n) for n in range(10)]
    waits = [asyncio.create_task(await_(job.id, timeout=60)) for job in enqueued]
    result = await tasks.aadd.aenqueue(1, 2)
    awaited = asyncio.create_task(result.await_(timeout=60))
    await aeventually(lambda: sum(job.awaited for job in queued()) == 11)
    with working():
        done = await asyncio.gather(*waits)
        assert (await awaited).return_value == 3
    assert [job.result for job in done] == list(range(10))
