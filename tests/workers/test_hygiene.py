"""What a handler leaves in its connection does not reach the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import connections
from django.db.backends.signals import connection_created

from django_jobqueue.workers import hygiene
from tests.conftest import HandDriven, archived, eventually
from tests.sample import jobs

Make = Callable[..., HandDriven]


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """As in a worker process."""
    hygiene.keep_connections()
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


def test_settings_locks_and_temporary_tables_are_gone(make_worker: Make) -> None:
    _path, zone, locks, table = session_after(make_worker, jobs.leave_a_mess.enqueue)
    assert (zone, locks, table) == ("UTC", "0", "None")


def test_an_open_transaction_is_closed(
    make_worker: Make, caplog: pytest.LogCaptureFixture
) -> None:
    session_after(make_worker, jobs.leave_open.enqueue)
    assert "left a transaction open" in caplog.text


ADVISORY = """
SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
 WHERE locktype = 'advisory' AND datname = current_database()
"""


def test_what_an_async_handler_left_is_cleaned_though_no_job_follows(
    make_worker: Make,
) -> None:
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
        hygiene.after_job()
        wrapper.close_if_unusable_or_obsolete()
        seen.append(wrapper.connection is not None)
        connections.close_all()

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join(10)
    return seen == [True]


@pytest.mark.django_db(transaction=True)
def test_connections_of_handlers_are_kept_from_job_to_job() -> None:
    assert connections.settings["default"]["CONN_MAX_AGE"] == 0
    assert kept_after(hygiene.before_job)


@pytest.mark.django_db(transaction=True)
def test_connections_of_other_threads_live_as_long_as_the_project_says() -> None:
    assert not kept_after()


def test_a_thread_that_never_connected_has_nothing_to_clean() -> None:
    hygiene._here.__dict__.clear()
    hygiene.after_job()
    assert not hygiene._here.connected
