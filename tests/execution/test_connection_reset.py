"""What a handler leaves in its connection does not reach the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.db.backends.signals import connection_created
from psycopg import IsolationLevel
from psycopg.rows import dict_row

from django_jobqueue import job
from django_jobqueue.execution import connection_reset
from django_jobqueue.testing import drain
from tests.sample import jobs
from tests.store.proxy import Proxy
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.waiting import eventually

COUNT_QUERIES = "django_jobqueue.middleware.count_queries"
Make = Callable[..., HandDriven]


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """As in a worker process."""
    connection_reset.keep_connections()
    yield
    connection_created.disconnect(dispatch_uid="jobqueue.hygiene")


def session_after(make_worker: Make, handler: Callable[[], object]) -> list[str]:
    """What the second job on a thread sees of the session."""
    worker = make_worker(threads=1, async_slots=0)
    jobs.see_session.enqueue()
    worker.work()
    handler()
    worker.work()
    jobs.see_session.enqueue()
    worker.work()
    clean, *_, seen = [job.result for job in archived() if job.result is not None]
    assert seen == clean
    return list(seen)


def test_settings_locks_and_temporary_tables_are_gone_and_no_transaction_is_open(
    make_worker: Make, caplog: pytest.LogCaptureFixture
) -> None:
    _path, zone, locks, table = session_after(make_worker, jobs.leave_a_mess.enqueue)
    assert (zone, locks, table) == ("UTC", "0", "None")
    assert "left a transaction open" not in caplog.text
    session_after(make_worker, jobs.leave_open.enqueue)
    assert "left a transaction open" in caplog.text


LEAVE: Final = "SET search_path = pg_catalog"


@job
def leave_by(way: str) -> None:
    """Leave a setting in the session, past Django."""
    raw = connection.connection or connection.cursor().connection
    if way == "psycopg":
        raw.execute(LEAVE)
    elif way == "a cursor of psycopg":
        raw.cursor().execute(LEAVE)
    elif way == "a cursor of the server":
        with raw.cursor(name="found") as cursor:
            cursor.execute(
                "SELECT set_config('search_path', 'pg_catalog', false)"
            ).fetchall()
            raw.commit()
    elif way == "rows":
        raw.row_factory = dict_row
    else:
        raw.autocommit = False


WAYS: Final = (
    "psycopg",
    "a cursor of psycopg",
    "a cursor of the server",
    "rows",
    "autocommit",
)


def test_what_was_set_past_django_is_gone(make_worker: Make) -> None:
    worker = make_worker(threads=1, async_slots=0)
    seen = {}
    for way in ("", *WAYS):
        if way:
            leave_by.enqueue(way)
            worker.work()
        made = jobs.see_session.enqueue()
        worker.work()
        seen[way] = archived(id=made.id)[0].result
    assert {way: found for way, found in seen.items() if found != seen[""]} == {}
    assert {job.status for job in archived()} == {"succeeded"}


@job
async def aleave() -> None:
    await sync_to_async(leave_by.function)("psycopg")


@job
async def asee_session() -> list[str]:
    return list(await sync_to_async(jobs.see_session.function)())


def test_async_handlers_one_after_another_leave_each_other_nothing(
    make_worker: Make,
) -> None:
    worker = make_worker(threads=0, async_slots=1)
    for handler in (asee_session, aleave, asee_session):
        handler.enqueue()
    worker.work()
    clean, seen = (job.result for job in archived(job_type_id=asee_session.name))
    assert seen == clean


ADVISORY = """
SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
 WHERE locktype = 'advisory' AND datname = current_database()
"""


def test_what_an_async_handler_left_is_cleaned_at_once(make_worker: Make) -> None:
    def locks() -> int:
        with connections["default"].cursor() as cursor:
            cursor.execute(ADVISORY)
            return int(cursor.fetchone()[0])

    worker = make_worker(threads=0)
    jobs.aleave_a_mess.enqueue()
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"]
    eventually(lambda: locks() == 0, what="the lock of the session to be given up")


def kept_after(*before: Callable[[], None]) -> bool:
    """Whether a thread that did this has its connection after a job, or a request."""
    seen: list[bool] = []

    def connect() -> None:
        for step in before:
            step()
        wrapper = connections["default"]
        wrapper.ensure_connection()
        connection_reset.after_job()
        wrapper.close_if_unusable_or_obsolete()
        seen.append(wrapper.connection is not None)
        connections.close_all()

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join(10)
    return seen == [True]


@pytest.mark.django_db(transaction=True)
def test_connections_of_handlers_are_kept_from_job_to_job_and_no_others() -> None:
    """Those of other threads live as long as the project says."""
    assert connections.settings["default"]["CONN_MAX_AGE"] == 0
    assert kept_after(connection_reset.handlers_run_here)
    assert not kept_after()


def test_a_thread_that_never_connected_has_nothing_to_clean() -> None:
    seen: list[Any] = []

    def look() -> None:
        connection_reset.after_job()
        seen.append(connections["default"].connection)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(10)
    assert seen == [None]


def set_by_the_project(connection: Any, **kwargs: Any) -> None:
    """As receivers of projects do: a bound, a tenant of row level security, a role."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '77s'")
        cursor.execute("SELECT set_config('app.tenant', 'seven', false)")
        cursor.execute("SET search_path = public, pg_temp")


@contextmanager
def receiver_of(function: Callable[..., None]) -> Iterator[None]:
    connection_created.connect(function)
    yield
    connection_created.disconnect(function)


SETTINGS = (
    "SELECT concat_ws(' ', current_setting('statement_timeout'), "
    "current_setting('app.tenant', true), current_setting('search_path'), "
    "current_setting('TimeZone'))"
)


def test_what_the_project_set_stays_from_job_to_job(make_worker: Make) -> None:
    with receiver_of(set_by_the_project):
        worker = make_worker(threads=1, async_slots=0)
        for handler in (None, None, jobs.leave_a_mess, jobs.fail, None):
            if handler is not None:
                handler.enqueue()
            jobs.ask.enqueue(SETTINGS)
            worker.work()
    seen = [job.result for job in archived(job_type_id=jobs.ask.name)]
    assert seen == ["77s seven public, pg_temp UTC"] * 5


def test_a_failing_receiver_costs_the_connection_and_no_job(make_worker: Make) -> None:
    calls = []

    def fail_later(connection: Any, **kwargs: Any) -> None:
        calls.append(connection)
        if calls.count(connection) == 2:
            raise ValueError("the second time")

    with receiver_of(fail_later):
        worker = make_worker(threads=1, async_slots=0)
        for _ in range(3):
            jobs.see_session.enqueue()
            worker.work()
    assert [job.status for job in archived()] == ["succeeded"] * 3
    assert max(map(calls.count, calls)) >= 3, "it connected again"


@pytest.mark.parametrize("middleware", [[], [COUNT_QUERIES]], ids=["plain", "counted"])
def test_a_statement_wrapper_of_a_handler_ends_with_its_block(
    make_worker: Make, settings: Any, middleware: list[str]
) -> None:
    """Also if the connection is opened inside of it."""
    settings.JOBQUEUE = {"MIDDLEWARE": middleware}
    worker = make_worker(threads=1, async_slots=0)
    for handler in (jobs.wrap_statements, jobs.see_session):
        handler.enqueue()
        worker.work()
    assert [job.status for job in archived()] == ["succeeded"] * 2


@job
def how_it_begins() -> str:
    """How a transaction begins; the next one would be another."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT concat_ws(' ', current_setting('transaction_isolation'), "
            "current_setting('transaction_read_only'))"
        )
        (found,) = cursor.fetchone()
    raw = connection.connection
    raw.isolation_level, raw.read_only = IsolationLevel.SERIALIZABLE, True
    return str(found)


def test_how_transactions_begin_is_as_django_set_it(make_worker: Make) -> None:
    worker = make_worker(threads=1, async_slots=0)
    for _ in range(2):
        how_it_begins.enqueue()
        worker.work()
    assert [job.result for job in archived()] == ["read committed off"] * 2


def test_context_variables_of_a_handler_end_with_it(make_worker: Make) -> None:
    worker = make_worker(threads=1, async_slots=1)
    for handler in (jobs.set_context, jobs.aset_context):
        for _ in range(3):
            handler.enqueue("mine")
            worker.work()
    assert [job.result for job in archived()] == [None] * 6
    jobs.set_context.enqueue("mine")
    drain()
    assert jobs.context_variable.get() is None


def test_an_outcome_does_not_wait_for_a_connection_that_answers_no_more(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that is half open: the connection is there, and silent."""
    monkeypatch.setattr(connection_reset, "CLEANING", 0.5)
    settings = connections.settings["default"]
    worker = make_worker(threads=1, async_slots=0)
    jobs.add.enqueue(1)
    worker.work()  # all but the handlers' thread are connected
    with Proxy(settings["HOST"], settings["PORT"]) as proxy:
        monkeypatch.setitem(settings, "HOST", "127.0.0.1")
        monkeypatch.setitem(settings, "PORT", str(proxy.port))
        jobs.gates["silent"] = gate = threading.Event()
        made = jobs.query_and_stay.enqueue("silent")
        worker.claim()
        (executor,) = worker.worker.executors
        eventually(lambda: jobs.gates.get("silent queried"))
        proxy.fall_silent()
        gate.set()
        eventually(lambda: worker.worker.completer.waiting, what="the outcome")
        assert executor.running, "its thread is cleaning up"
        monkeypatch.undo()
        worker.finish()
        assert archived(id=made.id)[0].status == "succeeded"
        eventually(lambda: not executor.running, what="the end of the cleaning")
    jobs.see_session.enqueue()
    worker.work()
    assert len(archived(status="succeeded")) == 3
