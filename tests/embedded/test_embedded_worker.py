"""A worker in the test's own process: what it does, and what it leaves alone."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections
from django.test import override_settings

import django_jobqueue
from django_jobqueue.embedded import asgi
from django_jobqueue.embedded.embedded_worker import EmbeddedWorker
from django_jobqueue.models import Worker
from tests.embedded.conftest import Start
from tests.sample import jobs
from tests.support.kept_connections import NAME
from tests.support.rows import archived, queued
from tests.support.tables import differing, refusal
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def other_connections() -> list[str]:
    """The names of all connections to this database but those of tests."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND application_name <> %s",
            [NAME],
        )
        return [name for (name,) in cursor.fetchall()]


def in_slots(worker: EmbeddedWorker) -> int:
    """How many handlers have begun: what was only claimed is given back at a stop."""
    hosted = worker._hosted  # private: users cannot ask
    return 0 if hosted is None else hosted.worker.running


def test_jobs_run_while_the_block_lasts() -> None:
    with django_jobqueue.worker(threads=2, async_slots=2) as worker:
        ids = {jobs.add.enqueue(1, 2).id, jobs.aadd.enqueue(1, 2).id}
        worker.wait_idle()
        assert {job.id for job in archived(status="succeeded")} == ids
        (row,) = Worker.objects.all()
        assert (row.name, row.state, row.threads) == (worker.name, "running", 2)
    jobs.add.enqueue(1, 2)
    row.refresh_from_db()
    assert (row.state, row.end, row.rescued) == ("stopped", "ended", {})
    assert len(queued()) == 1
    with pytest.raises(ZeroDivisionError), worker:
        raise ZeroDivisionError
    assert not worker.is_running


def test_it_leaves_the_process_as_it_is() -> None:
    """With no connection and no thread more."""
    threads = set(threading.enumerate())
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    handlers = [signal.getsignal(number) for number in numbers]
    interval = sys.getswitchinterval()
    with django_jobqueue.worker() as worker:
        for _ in range(4):
            jobs.see_session.enqueue()
            jobs.aquery.enqueue()
        worker.wait_idle()
        assert "jobqueue renewer" in other_connections()
        assert [signal.getsignal(number) for number in numbers] == handlers
        assert sys.getswitchinterval() == interval
        assert connections.settings["default"]["CONN_MAX_AGE"] == 0
    assert [job.status for job in archived()] == ["succeeded"] * 8
    eventually(lambda: not other_connections())
    assert set(threading.enumerate()) <= threads


def test_whatever_was_committed_before_one_waits_is_done_when_it_is_idle(
    start: Start,
) -> None:
    worker = start()
    for n in range(10):
        id = jobs.add.enqueue(n).id
        worker.wait_idle()
        assert archived(id=id)[0].status == "succeeded"
    eventually(lambda: worker.is_idle)  # nothing wakes it any more


def test_a_wait_that_lasts_too_long_says_for_what(
    start: Start, gate: threading.Event
) -> None:
    worker = start()
    job = jobs.stay.enqueue("gate")
    eventually(lambda: queued(status="running"))
    assert not worker.is_idle
    with pytest.raises(TimeoutError) as waited:
        worker.wait_idle(0.1)
    assert str(waited.value) == (
        f"After 0.1 s the worker still has 1 job: {job.id} (tests.sample.stay)."
    )
    gate.set()
    worker.wait_idle()
    with pytest.raises(RuntimeError, match=r"Call start\(\) first"):
        django_jobqueue.worker().wait_idle()


def test_a_stop_lets_running_jobs_end(start: Start, gate: threading.Event) -> None:
    worker = start()
    jobs.stay.enqueue("gate")
    jobs.astay.enqueue("gate")
    eventually(lambda: in_slots(worker) == 2)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    eventually(lambda: worker.name == "", what="it to stop claiming")
    gate.set()
    stopping.join(30)
    assert not worker.is_running
    assert [job.status for job in archived()] == ["succeeded"] * 2


def test_jobs_that_run_longer_than_the_grace_are_released(
    start: Start, gate: threading.Event
) -> None:
    worker = start(grace=0.05)
    jobs.stay.enqueue("gate")
    jobs.astay.enqueue("gate")
    eventually(lambda: in_slots(worker) == 2)
    worker.stop()
    assert [(j.status, j.attempts, j.crashes) for j in queued()] == [
        ("queued", 0, 0)
    ] * 2
    eventually(lambda: not other_connections())


def test_a_job_that_does_not_stop_is_released_and_told_of(
    start: Start, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    worker = start(grace=0.0)
    jobs.hang_until.enqueue("gate")
    eventually(lambda: in_slots(worker))
    with override_settings(JOBQUEUE={"CANCEL_GRACE": 0.1}):
        worker.stop()
    assert "does not stop; it goes on in this process" in caplog.text
    assert [(j.status, j.attempts) for j in queued()] == [("queued", 0)]
    gate.set()  # its outcome changes nothing now
    eventually(lambda: not other_connections())
    assert [(j.status, j.attempts) for j in queued()] == [("queued", 0)]


def test_two_in_one_process_have_names_of_their_own(start: Start) -> None:
    first, second = start(queues=["a"]), start(queues=["b"])
    a = jobs.add.using(queue="a").enqueue(1).id
    b = jobs.add.using(queue="b").enqueue(1).id
    first.wait_idle()
    second.wait_idle()
    assert first.name != second.name
    assert {job.id: job.worker for job in archived()} == {a: first.name, b: second.name}
    for worker in (first, second):
        assert "/embedded-" in worker.name


def test_starting_twice_is_starting_once_and_it_can_be_started_again(
    start: Start,
) -> None:
    worker = start()
    worker.start()
    worker.wait_idle()
    assert Worker.objects.count() == 1
    worker.stop()
    worker.stop()
    worker.start()
    jobs.add.enqueue(1)
    worker.wait_idle()
    assert [row.state for row in Worker.objects.order_by("id")] == [
        "stopped",
        "running",
    ]


def test_it_runs_in_any_thread() -> None:
    def work() -> None:
        django_jobqueue.worker(threads=1).run_until_idle(30)
        connections.close_all()

    jobs.add.enqueue(1)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(40)
    assert [job.status for job in archived()] == ["succeeded"]


def test_running_until_idle_does_what_can_be_done_now(start: Start) -> None:
    jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    jobs.fail.enqueue()  # three attempts, one after the other
    django_jobqueue.worker().run_until_idle(30)
    assert [job.job_type_id for job in archived()] == ["tests.sample.fail"]
    assert len(queued()) == 1
    assert Worker.objects.get().state == "stopped"


def test_async_handlers_do_not_share_the_thread_of_the_host_s_async_code(
    start: Start,
) -> None:
    """What is between jobs resets connections: not those of others."""
    worker = start()
    jobs.athread.enqueue()
    worker.wait_idle()
    (job,) = archived()
    assert job.result != asyncio.run(sync_to_async(threading.get_ident)())
    assert job.result != threading.get_ident()


SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({"threads": 0, "async_slots": 0}, "With threads=0 and async_slots=0 nothing"),
    ({"threads": -1}, "threads must be at least 0, not -1"),
    ({"async_slots": -1}, "async_slots must be at least 0, not -1"),
    ({"grace": -1}, "grace must be at least 0, not -1"),
    ({"queues": ["a,b"]}, "queues has an invalid queue name: it must have no"),
]
UNKNOWN: list[tuple[dict[str, Any], str]] = [
    ({"queues": "mail"}, "queues must be a list of names: queues=['mail']"),
    ({"threads": "2"}, "threads must be a whole number, not '2'."),
    ({"threads": True}, "threads must be a whole number, not True."),
    ({"async_slots": 1.5}, "async_slots must be a whole number, not 1.5."),
    ({"grace": "5"}, "grace must be a number of seconds, not '5'."),
    ({"queues": 5}, "queues must be a list of strings, not 5."),
    ({"queues": [5]}, "queues must be a list of strings, not [5]."),
    ({"queue": "mail"}, "worker() has no argument 'queue'. Write queues=[…]."),
    (
        {"concurrency": 4},
        "worker() has no argument 'concurrency'. Write threads=… for sync handlers, "
        "async_slots=… for async ones.",
    ),
    (
        {"processes": 4},
        "worker() has no argument 'processes'. It runs in threads of this process; "
        "manage.py runworkers starts processes.",
    ),
    ({"thread": 4}, "worker() has no argument 'thread'. Did you mean 'threads'?"),
    (
        {"xyzzy": 4},
        "worker() has no argument 'xyzzy'. Its arguments are queues, threads, "
        "async_slots, grace.",
    ),
]


def test_options_that_make_no_sense_are_refused_with_what_to_write() -> None:
    """Also those of a worker beside an application."""
    beside: Any = partial(asgi, None)

    def refused(error: type[Exception], make: Any, options: dict[str, Any]) -> str:
        return refusal(error, partial(make, **options))

    for make in (django_jobqueue.worker, beside):
        for error, table in ((ValueError, SENSELESS), (TypeError, UNKNOWN)):
            ask = partial(refused, error, make)
            assert differing(table, ask, str.startswith) == []


def test_what_is_not_given_is_as_the_settings_say(start: Start) -> None:
    told = {"QUEUES": ["a"], "THREADS": 3, "ASYNC_SLOTS": 5, "RELEASE": "tests"}
    with override_settings(JOBQUEUE=told):
        worker = start(threads=None)
        worker.wait_idle()
    row = Worker.objects.get()
    assert (row.queues, row.threads, row.async_slots) == (["a"], 3, 5)


def test_a_database_that_is_no_postgresql_is_refused(lite: None) -> None:
    with pytest.raises(ImproperlyConfigured, match="'lite' is sqlite"):
        django_jobqueue.worker().start()
